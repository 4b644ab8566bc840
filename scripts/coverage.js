'use strict'

// `npm run coverage [-- --only PATTERN]`: how many lines of lib/, core/ and src/ the tests run. Linux and macOS.
//
// lib/ by the tests of __test__/ on this Node, as V8 counts and c8 reports it; core/ and src/ by those and by cargo's
// tests, as the compiler counts and llvm-cov reports it: that takes rustup's component llvm-tools.
// `--only` as of `npm test`.
//
// A thread that is terminated, or a process that is killed, writes nothing down: the figures are lower bounds.

const fs = require('fs')
const path = require('path')
const { libraryFile, target } = require('../lib/agent/target')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment, find } = require('./lib/cargo')
const { run, succeed } = require('./lib/child')
const { succeedNpm } = require('./lib/npm')
const { withCopy } = require('./lib/scratch')
const setup = require('./setup')

const C8 = 'c8@12.0.0'
const root = path.join(__dirname, '..')
const TARGET = path.join(root, 'target', 'coverage')
const TIMEOUT = 60 * 60 * 1000

/** Returns the compiler's host, and the paths of its llvm-tools. */
async function toolchain () {
  const rustc = find('rustc')
  const [, host] = /^host: (.*)$/m.exec(await succeed(rustc, ['-vV']))
  const folder = path.join((await succeed(rustc, ['--print', 'target-libdir'])).trim(), '..', 'bin')
  if (!fs.existsSync(path.join(folder, 'llvm-cov'))) throw new Error('needed: rustup component add llvm-tools')
  return { host, tool: name => path.join(folder, name) }
}

/** Builds and runs cargo's tests, and builds the library. Gives the paths of all that was built. */
async function rustTests (env, host) {
  const options = { cwd: root, env, echo: true, timeout: TIMEOUT }
  // Where the target is named, build scripts are not instrumented.
  const places = ['--locked', '--target', host, '--target-dir', TARGET]
  const tests = ['test', ...places, '--workspace']
  const built = await succeed(cargo(), [...tests, '--no-run', '--message-format=json'], options)
  await succeed(cargo(), ['build', ...places, '--package', 'atomics-waitasync'], options)
  await run(cargo(), [...tests, '--no-fail-fast'], options)
  const library = ['so', 'dylib'].map(ext => path.join(TARGET, host, 'debug', `libatomics_waitasync.${ext}`))
  const programs = Array.from(built.matchAll(/"executable":"(.+?)"/g), ([, file]) => file)
  return [library.find(file => fs.existsSync(file)), ...programs]
}

/** Prints how many lines of the files of `core/` and `src/` ran. */
async function reportRust (tool, profiles, [first, ...others]) {
  const all = path.join(profiles, 'all.profdata')
  const files = fs.readdirSync(profiles).filter(name => name.endsWith('.profraw'))
  const options = { cwd: profiles, timeout: TIMEOUT }
  await succeed(tool('llvm-profdata'), ['merge', '--sparse', '--failure-mode=all', '--output', all, ...files], options)
  const objects = others.flatMap(file => ['--object', file])
  const report = ['report', '--show-region-summary=false', '--ignore-filename-regex', '/tests[.]rs$']
  for (const sources of [path.join(root, 'core', 'src'), path.join(root, 'src')]) {
    const about = ['--instr-profile', all, first, ...objects, '--sources', sources]
    console.log(`${sources}\n${await succeed(tool('llvm-cov'), [...report, ...about], options)}`)
  }
}

/** Prints the same of `lib/`. */
async function reportJavaScript (copy, folder) {
  const reporters = ['--reporter', 'text', '--reporter', 'text-summary']
  const options = ['--merge-async', '--all', '--src', 'lib', '--include', 'lib/**', '--temp-directory', folder]
  const c8 = ['exec', '--yes', '--package', C8, '--', 'c8', 'report', ...reporters, ...options]
  console.log(await succeedNpm(c8, { cwd: copy, timeout: TIMEOUT }))
}

async function main () {
  const { only } = argumentsOf(__filename, {
    only: { type: 'string', default: '^(atomics|locks|named|install|ends)/' }
  })
  await setup.installDependencies()
  const { host, tool } = await toolchain()
  await withCopy(async copy => {
    const profiles = path.join(copy, 'profiles')
    const folder = path.join(copy, 'coverage')
    // A pool of files, since there are thousands of processes.
    const LLVM_PROFILE_FILE = path.join(profiles, '%8m.profraw')
    const rustEnvironment = environment({ LLVM_PROFILE_FILE, RUSTFLAGS: '-Cinstrument-coverage' })
    const [library, ...programs] = await rustTests(rustEnvironment, host)
    fs.copyFileSync(library, path.join(copy, libraryFile(target())))
    const tests = ['--no-rust', '--no-setup', '--node', 'current', '--subject', 'none,force', '--only', only]
    // A test of time may fail: all that counts here is which lines were run.
    await run(process.execPath, [path.join('scripts', 'test.js'), ...tests], {
      cwd: copy,
      env: { ...process.env, LLVM_PROFILE_FILE, NODE_V8_COVERAGE: folder, TEST_SLOWNESS: '4' },
      echo: 'all',
      timeout: TIMEOUT
    })
    await reportJavaScript(copy, folder)
    await reportRust(tool, profiles, [library, ...programs])
  })
}

command(main)
