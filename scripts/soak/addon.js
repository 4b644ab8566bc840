'use strict'

// An addon that has nothing to do with this package: Node loads it in workers, and unloads it with them.

const { spawnSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')

const SOURCE = `
#include <stddef.h>
typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
__attribute__((visibility("default"))) napi_value napi_register_module_v1 (napi_env env, napi_value exports) { return exports; }
`

/** Builds it. Gives its path and how to remove it; the path is undefined where there is no C compiler. */
function buildAddon () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'soak-'))
  const [source, addon] = ['addon.c', 'addon.node'].map(name => path.join(folder, name))
  fs.writeFileSync(source, SOURCE)
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-o', addon, source], { stdio: 'ignore' })
  const remove = () => {
    for (const file of [source, addon]) if (fs.existsSync(file)) fs.unlinkSync(file)
    fs.rmdirSync(folder)
  }
  return { addon: status === 0 ? addon : undefined, remove }
}

module.exports = { buildAddon }
