'use strict'

// `npm run test:platforms`: builds the library for other platforms than this machine's and runs the tests there, by
// emulation. All it needs comes from the package registries, into the user's cache folder.
//
//   npm run test:platforms [-- --only arm64,musl] [--node 20] [--steps soak] [--files lock]
//
// Each run writes what it does to target/platforms/<platform>-<version>.log, as it goes.
//
// --only    some of the platforms below
// --node    one major version instead of all that the platform has here
// --steps   some of tests, soak, release: the tests, a soak, the packages as a release makes them, installed and used
//           there
// --files   the test files whose name matches a regular expression, and nothing else
//
// Needs Linux x64 with Debian's package sources, and user namespaces. Missing things are skipped, by name, with the
// reason. Not part of `npm test`: it takes hours, since emulated code is ten times as slow. The last line is `N passed,
// N failed[, N skipped]`.

const fs = require('fs')
const path = require('path')
const { libraryFile, target: hostTarget } = require('../../lib/agent/target')
const { argumentsOf, someOf } = require('../../scripts/lib/arguments')
const { compile } = require('../../scripts/build')
const cache = require('../../scripts/lib/cache')
const { environment } = require('../../scripts/lib/cargo')
const { run } = require('../../scripts/lib/child')
const { release } = require('../../scripts/lib/npm')
const { clock } = require('../../scripts/lib/report')
const { withCopy, withScratch } = require('../../scripts/lib/scratch')
const { countScript } = require('../../scripts/lib/steps')
const { arm64, armv7, musl, nodeForMusl, nodeForWindows, nodeOf, wine } = require('./emulation')
const { build, buildForWindows, check, compiler } = require('./toolchain')
const nodes = require('../../scripts/nodes')
const { makePackages } = require('../../scripts/package')
const setup = require('../../scripts/setup')

const root = path.join(__dirname, '..', '..')
const HOUR = 60 * 60 * 1000
const SOAK = 60 // seconds
/** Those that install the package in the rehearsal of a release. */
const NPMS = ['6.14.18', '8.19.4', '10.9.4', '11.21.2']
/** The tests of the tools, some of which build the library for the machine at hand, are left out. */
const ALL = '^(?!tools/(benchmark|docs\\.|package|runner|structure))'

/**
 * `target` is the name in scripts/lib/targets.js; `versions` of Node that there are for it; `node` gives the path of
 * one; `emulation` the words before a command that is to run there; `emulator` its name, if tests have to know it;
 * `slowness` is that of the tests. Those with `rust` are only compiled. `other-systems` is this machine with the native
 * code that systems other than Linux have.
 */
const PLATFORMS = {
  'other-systems': {
    versions: ['12', '24'],
    node: async version => (await nodes.get(version)).path,
    emulation: async () => [],
    slowness: 1
  },
  musl: { target: 'linux-x64-musl', versions: ['24'], node: nodeForMusl, emulation: musl, slowness: 2 },
  arm64: {
    target: 'linux-arm64-gnu',
    versions: ['16.20.2', '20.20.2', '24.21.0'],
    node: nodeOf('linux-arm64'),
    emulation: arm64,
    emulator: 'qemu',
    slowness: 20
  },
  armv7: {
    target: 'linux-arm-gnueabihf',
    versions: ['16.20.2', '20.11.0'],
    node: nodeOf('linux-armv7l'),
    emulation: armv7,
    slowness: 20
  },
  windows: {
    target: 'win32-x64-msvc',
    versions: ['20.20.2', '24.21.0'],
    node: nodeForWindows,
    emulation: wine,
    slowness: 3
  },
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
  if (target === 'win32-x64-msvc') return { library: await buildForWindows(), told: {} }
  if (target !== undefined)
    return {
      library: await build(target),
      told: { PATH: `${await compiler(target)}${path.delimiter}${process.env.PATH}` }
    }
  const folder = path.join(root, 'target', 'platforms', 'other-systems')
  return {
    library: await compile(['--features', 'other-systems', '--target-dir', folder], environment()),
    told: { TEST_OTHER_SYSTEMS: '1' }
  }
}

/** The steps on each Node of a platform: `words` are those of its emulation. */
const STEPS = {
  async tests (place, { files = ALL }) {
    const { name, version, copy, words, binary, env } = place
    const log = path.join(root, 'target', 'platforms', `${name}-${version}.log`)
    console.log(`${name.padEnd(14)} Node ${version}: see ${path.relative(root, log)}`)
    const command = [
      process.execPath, path.join(copy, 'scripts', 'test.js'), '--no-rust', '--no-setup', '--node', binary, '--subject',
      'none,force', '--only', files
    ]
    const { seconds } = await run('bash', ['-c', 'exec "$@" > "$0" 2>&1', log, ...words, ...command], {
      cwd: copy,
      env,
      timeout: 6 * HOUR
    })
    const output = fs.readFileSync(log, 'utf8')
    const counts = countScript(output) || { passed: 0, failed: 1, skipped: 0 }
    const { passed, failed, skipped } = counts
    say(name, `Node ${version}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${clock(seconds)}`, counts)
    for (const line of output.match(/^FAILED .*$/gm) || []) console.log(`${' '.repeat(14)} ${line}`)
  },

  async soak (place) {
    const ended = await runThere(place, [
      place.binary, '--expose-gc', path.join(place.copy, '__test__', 'soak', 'main.js'), String(SOAK), '1'
    ])
    const good = ended.code === 0
    const result = good ? 'no law was broken' : `failed\n${ended.output.slice(-3000)}`
    say(place.name, `Node ${place.version}: soak of ${SOAK} s: ${result}`, { [good ? 'passed' : 'failed']: 1 })
  },

  /**
   * Makes the packages, installs and uses them there, as a release's workflow: by more package managers.
   */
  async release (place, { library }) {
    const { name, version, copy, binary, target } = place
    if (target === undefined) return
    // They run cmd.exe and make links between folders.
    if (name === 'windows')
      return say(name, `Node ${version}: package managers: skipped, Wine lacks what they need`, { skipped: 1 })
    await withScratch(async out => {
      await makePackages({ out, names: [target], compiled: { [target]: library } })
      for (const npm of NPMS) await release('npm', npm, 'package.json')
      const at = ['--from', out, '--node', binary]
      for (const [what, args] of [
        [`npm ${NPMS.join(', ')}`, ['tarballs.js', '--no-build', '--npm', NPMS.join(','), ...at]],
        ['pnpm, Yarn', ['consumers.js', '--only', '^(pnpm 10|Yarn)', ...at]]
      ]) {
        const ended = await runThere(place, [binary, path.join(copy, 'scripts', args[0]), ...args.slice(1)])
        const { passed, failed, skipped } = countScript(ended.output) || { passed: 0, failed: 1, skipped: 0 }
        const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`
        say(name, `Node ${version}: installed by ${what}: ${counts}`, { passed, failed, skipped })
        if (failed > 0) console.log(ended.output.slice(-5000))
      }
    })
  }
}

/** Runs a command on a platform. */
const runThere = ({ words, copy, env }, command) =>
  run(words[0] || command[0], [...words, ...command].slice(1), { cwd: copy, env, timeout: HOUR })

async function testPlatform (name, only, steps, files) {
  const platform = PLATFORMS[name]
  if (platform.rust !== undefined) {
    await check(platform.rust)
    return say(name, `${platform.rust} compiles`, { passed: 1 })
  }
  const { target, versions, node, emulation, emulator, slowness } = platform
  const chosen = versions.filter(version => only === undefined || version.split('.')[0] === only)
  if (chosen.length === 0) throw new cache.Unavailable(`there is no Node ${only} here, but ${versions.join(', ')}`)
  const words = await emulation()
  const { library, told } = await buildFor(target)
  const env = { ...process.env, ...told, TEST_SLOWNESS: String(slowness), TEST_EMULATOR: emulator || '' }
  await withCopy(async copy => {
    fs.copyFileSync(library, path.join(copy, libraryFile(target || hostTarget())))
    for (const version of chosen) {
      const place = { name, version, target, copy, words, binary: await node(version), env }
      for (const step of steps) await STEPS[step](place, { files, library })
    }
  })
}

async function main () {
  const { only, node, steps, files } = argumentsOf(
    'npm run test:platforms [-- --only arm64,musl] [--node 20] [--steps tests,soak,release] [--files lock]',
    {
      only: { type: 'string', default: Object.keys(PLATFORMS).join(','), read: someOf(Object.keys(PLATFORMS)) },
      node: { type: 'string' },
      steps: { type: 'string', default: Object.keys(STEPS).join(','), read: someOf(Object.keys(STEPS)) },
      files: { type: 'string' }
    }
  )
  await setup.installDependencies()
  for (const name of only) {
    try {
      if (process.platform !== 'linux' || process.arch !== 'x64') throw new cache.Unavailable('needs Linux x64')
      await testPlatform(name, node, files ? ['tests'] : steps, files)
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
