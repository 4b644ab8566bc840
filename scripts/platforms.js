'use strict'

// `npm run test:platforms`: builds the library for other platforms than this machine's and runs the tests there, by emulation. All it
// needs comes from the package registries, into the user's cache folder.
//
//   npm run test:platforms [-- --only arm64,musl] [--node 20] [--files lock]
//
// Each run writes what it does to target/platforms/<platform>-<version>.log, as it goes.
//
// --only    some of the platforms below
// --node    one major version instead of all that the platform has here
// --files   the test files whose name matches a regular expression; without a soak
//
// Needs Linux x64 with Debian's package sources, and user namespaces. What cannot be had is skipped, by name, with its reason. Not part of
// `npm test`: it takes hours, since emulated code is ten times as slow. The last line is `N passed, N failed[, N skipped]`.

const fs = require('fs')
const path = require('path')
const { libraryFile, target: hostTarget } = require('../lib/agent/target')
const { argumentsOf, someOf } = require('./lib/arguments')
const { compile } = require('./build')
const cache = require('./lib/cache')
const { environment } = require('./lib/cargo')
const { run } = require('./lib/child')
const { copyTree } = require('./lib/copy-tree')
const { clock } = require('./lib/progress')
const { countScript } = require('./lib/steps')
const { arm64, armv7, musl, nodeForMusl, nodeOf } = require('./platforms/emulation')
const { build, check, compiler } = require('./platforms/toolchain')
const nodes = require('./nodes')
const setup = require('./setup')

const root = path.join(__dirname, '..')
const HOUR = 60 * 60 * 1000
const SOAK = 60 // seconds
/** The tests of the tools, some of which build the library for the machine at hand, are left out. */
const ALL = '^(?!benchmark|bundle|instructions|runner|structure)'

/**
 * `target` is the name in lib/targets.js; `versions` of Node that there are for it; `node` gives the path of one; `emulation` the words before
 * a command that is to run there; `slowness` is that of the tests. Those with `rust` are only compiled. `other-systems` is this machine with
 * the native code that systems other than Linux have.
 */
const PLATFORMS = {
  'other-systems': { versions: ['12.22.12', '24.21.0'], node: async version => (await nodes.get(version)).path, emulation: async () => [], slowness: 1 },
  musl: { target: 'linux-x64-musl', versions: ['24'], node: nodeForMusl, emulation: musl, slowness: 2 },
  arm64: { target: 'linux-arm64-gnu', versions: ['16.20.2', '20.20.2', '24.21.0'], node: nodeOf('linux-arm64'), emulation: arm64, slowness: 20 },
  armv7: { target: 'linux-arm-gnueabihf', versions: ['16.20.2', '20.20.2'], node: nodeOf('linux-armv7l'), emulation: armv7, slowness: 20 },
  'darwin-x64': { rust: 'x86_64-apple-darwin' },
  'darwin-arm64': { rust: 'aarch64-apple-darwin' },
  freebsd: { rust: 'x86_64-unknown-freebsd' },
  'windows-arm64': { rust: 'aarch64-pc-windows-msvc' }
}

const total = { passed: 0, failed: 0, skipped: 0 }
const summary = []

function say (platform, text, { passed = 0, failed = 0, skipped = 0 }) {
  total.passed += passed
  total.failed += failed
  total.skipped += skipped
  summary.push(`${platform.padEnd(14)} ${text}`)
  console.log(summary[summary.length - 1])
}

/** Builds the library: its path, and what the tests are told of it by variables. */
async function buildFor (target) {
  if (target !== undefined) return { library: await build(target), told: { PATH: `${await compiler(target)}${path.delimiter}${process.env.PATH}` } }
  const folder = path.join(root, 'target', 'platforms', 'other-systems')
  return { library: await compile(['--features', 'other-systems', '--target-dir', folder], environment()), told: { TEST_OTHER_SYSTEMS: '1' } }
}

/** Runs the tests and a soak on one Node of a platform. */
async function testOn (name, version, copy, words, { node, slowness, told }, files) {
  const binary = await node(version)
  const env = { ...process.env, ...told, TEST_SLOWNESS: String(slowness) }
  const log = path.join(root, 'target', 'platforms', `${name}-${version}.log`)
  console.log(`${name.padEnd(14)} Node ${version}: see ${path.relative(root, log)}`)
  const command = [process.execPath, path.join(copy, 'scripts', 'test.js'), '--no-rust', '--no-setup', '--node', binary, '--subject', 'none,force', '--only', files || ALL]
  const { seconds } = await run('bash', ['-c', 'exec "$@" > "$0" 2>&1', log, ...words, ...command], { cwd: copy, env, timeout: 6 * HOUR })
  const output = fs.readFileSync(log, 'utf8')
  const counts = countScript(output) || { passed: 0, failed: 1, skipped: 0 }
  const { passed, failed, skipped } = counts
  say(name, `Node ${version}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${clock(seconds)}`, counts)
  for (const line of output.match(/^FAILED .*$/gm) || []) console.log(`${' '.repeat(14)} ${line}`)
  if (files !== undefined) return
  const soak = [...words, binary, '--expose-gc', path.join(copy, 'scripts', 'soak', 'main.js'), String(SOAK), '1']
  const ended = await run(soak[0], soak.slice(1), { cwd: copy, env, timeout: (1 + slowness) * SOAK * 1000 })
  const good = ended.code === 0
  say(name, `Node ${version}: soak of ${SOAK} s: ${good ? 'no law was broken' : `failed\n${ended.output.slice(-3000)}`}`, { [good ? 'passed' : 'failed']: 1 })
}

async function testPlatform (name, only, files) {
  const platform = PLATFORMS[name]
  if (platform.rust !== undefined) {
    await check(platform.rust)
    return say(name, `${platform.rust} compiles`, { passed: 1 })
  }
  const { target, versions, emulation } = platform
  const chosen = versions.filter(version => only === undefined || version.split('.')[0] === only)
  if (chosen.length === 0) throw new cache.Unavailable(`there is no Node ${only} here, but ${versions.join(', ')}`)
  const words = await emulation()
  const { library, told } = await buildFor(target)
  const copy = copyTree('platforms-')
  try {
    fs.copyFileSync(library, path.join(copy, libraryFile(target || hostTarget())))
    for (const version of chosen) await testOn(name, version, copy, words, { ...platform, told }, files)
  } finally {
    fs.rmSync(copy, { recursive: true, force: true })
  }
}

async function main () {
  const { only, node, files } = argumentsOf('npm run test:platforms [-- --only arm64,musl] [--node 20] [--files lock]', {
    only: { type: 'string', default: Object.keys(PLATFORMS).join(','), read: someOf(Object.keys(PLATFORMS)) },
    node: { type: 'string' },
    files: { type: 'string' }
  })
  await setup.installDependencies()
  for (const name of only) {
    try {
      if (process.platform !== 'linux' || process.arch !== 'x64') throw new cache.Unavailable('needs Linux x64')
      await testPlatform(name, node, files)
    } catch (error) {
      if (error instanceof cache.Unavailable) say(name, `skipped: ${error.message}`, { skipped: 1 })
      else say(name, `failed: ${error.message}`, { failed: 1 })
    }
  }
  console.log(`\n${summary.join('\n')}\n\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  if (total.failed > 0) process.exitCode = 1
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
