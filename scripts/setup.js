'use strict'

// The first step of every command on a fresh clone: it installs the development dependencies and builds the native part. Quick when
// there is nothing to do.

const fs = require('fs')
const path = require('path')
const { build } = require('./build')
const { command } = require('./lib/arguments')
const { succeedNpm } = require('./lib/npm')
const { compareVersions } = require('./lib/versions')

const root = path.join(__dirname, '..')
/** ESLint's. */
const OLDEST_NODE = '20.19'

/** Installs and builds what is missing or stale. Rejects with an error that says what to do. */
async function run () {
  if (compareVersions(process.versions.node, OLDEST_NODE) < 0) {
    throw new Error(`this needs Node ${OLDEST_NODE} or newer to run (it is ${process.version}); it fetches older ones itself to test them`)
  }
  await installDependencies()
  await build()
}

/** Installs the development dependencies, unless they are those of the lock file already. */
async function installDependencies () {
  const stale = staleDependency()
  if (stale) await install(stale)
}

// npm writes down what it installed; it has to be what the lock file says.
function staleDependency () {
  const lock = readJson(path.join(root, 'package-lock.json'))
  const installed = readJson(path.join(root, 'node_modules', '.package-lock.json'))
  for (const [folder, wanted] of Object.entries(lock ? lock.packages : {})) {
    if (folder === '' || wanted.optional) continue
    const found = installed && installed.packages[folder]
    if (!found || found.version !== wanted.version || found.integrity !== wanted.integrity) return folder
    if (!fs.existsSync(path.join(root, folder, 'package.json'))) return folder
  }
  return null
}

function readJson (file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw new Error(`${file}: ${error.message}`)
  }
}

async function install (stale) {
  console.error(`npm ci (${stale} is missing or not the locked version)`)
  // With the development dependencies also where NODE_ENV says production; without the package's own scripts: what they
  // would do is done here.
  await succeedNpm(['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: root })
}

module.exports = { run, installDependencies }

if (require.main === module) command(run)
