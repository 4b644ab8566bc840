'use strict'

// The package as users get it: its tarballs, a registry that serves them, folders to install it in, and an environment
// that hides this tree and the Rust toolchain.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { packageName, target } = require('../../lib/agent/target')
const { build } = require('../build')
const { makePackages, makePlatform } = require('../package')
const slowness = require('../../__test__/fixtures/slowness')
const cache = require('./cache')
const { succeed } = require('./child')
const { serve } = require('./local-registry')
const { manifestIn, succeedNpm } = require('./npm')
const { withScratch } = require('./scratch')
const { targets } = require('./targets')

/**
 * Returns the tarballs of a folder, or makes them in `out`; `quickly`: with the library that the tree has.
 * @returns {Promise<{ main: string, platform: string, facts: string[], unpublishable: ?string }>} `main` and `platform`
 *   are files; `unpublishable` says why they differ from those that would be published: they have the tree's library,
 *   built for this machine's own C library
 */
async function tarballsOf (folder, out, quickly) {
  let unpublishable = null
  const ofTree = async reason => {
    unpublishable = reason
    return makePackages({ out, isPublishable: false, compiled: { [target()]: await build() } })
  }
  const make = () => quickly ? ofTree('npm run test:all makes one') : makePackages({ out }).catch(error => {
    if (error instanceof cache.Unavailable) return ofTree(error.message)
    throw error
  })
  const made = folder ? [] : await make()
  const home = path.resolve(folder || out)
  const files = fs.readdirSync(home).filter(name => name.endsWith('.tgz'))
  const [main, platform] = ['atomics-waitasync', packageName(target())].map(name => {
    const file = files.find(each => each.startsWith(`${name}-`) && /^\d/.test(each.slice(name.length + 1)))
    if (file === undefined) throw new Error(`${home} does not contain the tarball of ${name}`)
    return path.join(home, file)
  })
  const facts = made.map(({ file, facts }) => `${path.basename(file)}: ${facts.join(', ')}`)
  return { main, platform, facts, unpublishable }
}

/**
 * Publishes all packages of a version to a registry: as a release does; those for other platforms have no library.
 */
async function publish ({ main, platform }, upstream) {
  const manifest = await manifestIn(main)
  const strays = Object.keys(manifest.optionalDependencies).filter(
    (name) => !Object.keys(targets).map(packageName).includes(name)
  )
  if (strays.length > 0) throw new Error(`optional dependencies that are never built: ${strays.join(', ')}`)
  const registry = await serve({ upstream })
  await withScratch(async scratch => {
    const out = path.join(scratch, 'dist')
    fs.mkdirSync(out)
    for (const file of [main, platform]) fs.copyFileSync(file, path.join(out, path.basename(file)))
    await packStubs(manifest, scratch, out)
    await succeed(process.execPath, [path.join(__dirname, '..', 'publish.js'), out, '--registry', registry.url], {
      env: publisher(registry), timeout: slowness * 5 * 60 * 1000
    })
  })
  return registry
}

/** Makes the tarballs of the other platforms. */
async function packStubs (main, scratch, out) {
  const folders = Object.keys(targets).filter(name => name !== target()).map(name => path.join(scratch, name))
  for (const folder of folders) makePlatform(folder, path.basename(folder), __filename, main)
  await succeedNpm(['pack', ...folders, '--pack-destination', out, '--ignore-scripts', '--loglevel=error'])
}

async function publishMain ({ main }) {
  const registry = await serve()
  await succeedNpm(['publish', main, '--registry', registry.url, '--loglevel=error'], { env: publisher(registry) })
  return registry
}

const publisher = ({ url }) => ({
  ...process.env,
  NO_PROXY: '127.0.0.1',
  [`npm_config_//${new URL(url).host}/:_authToken`]: 'any'
})

/** Returns the registry that the installed npm uses. */
async function upstreamRegistry () {
  return (await succeedNpm(['config', 'get', 'registry', '--loglevel=error'])).trim()
}

/** Whether a folder of the PATH has one. */
const hasCompiler = folder => ['cargo', 'cargo.exe'].some(name => fs.existsSync(path.join(folder, name)))

/** Returns the environment of a user without a compiler; `bin` is the folder of the `node` to use. */
function userEnvironment ({ home, bin, registry }) {
  // The settings of npm, cargo and the running Node are not for the programs that are started here.
  const settings = /^(npm_|yarn_|pnpm_|cargo|rust|corepack_|node_|init_cwd$|path$|home$|userprofile$|xdg_)/i
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !settings.test(key)))
  const folders = (process.env.PATH || '').split(path.delimiter)
  const others = folders.filter(name => name !== '' && !hasCompiler(name) && !name.includes('node_modules'))
  return {
    ...env,
    PATH: [bin, ...others].join(path.delimiter),
    HOME: home,
    USERPROFILE: home,
    NO_PROXY: '127.0.0.1',
    npm_config_registry: registry,
    npm_config_cache: path.join(home, 'npm-cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_progress: 'false'
  }
}

/** A user's machine without a compiler, with one Node and one registry. */
class Machine {
  constructor (node, home, registry, env) {
    this.node = node
    fs.mkdirSync(home, { recursive: true })
    this.env = { ...userEnvironment({ home, bin: path.dirname(node.path), registry }), ...env }
  }

  /** Runs a program, which must succeed, and returns its output. */
  run (command, args, options) {
    return succeed(command, args, { env: this.env, timeout: slowness * 5 * 60 * 1000, ...options })
  }

  runs (cwd, args, options) {
    return this.run(this.node.path, [...this.node.flags, ...args], { cwd, ...options })
  }

  async passes (cwd, args) {
    assert.strictEqual((await this.runs(cwd, args, { timeout: slowness * 60 * 1000 })).trim(), 'passed')
  }
}

module.exports = { Machine, hasCompiler, publish, publishMain, tarballsOf, upstreamRegistry }
