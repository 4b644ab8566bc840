'use strict'

// `npm run coverage [-- --only PATTERN]`: how many lines of lib/, core/ and src/ the tests run. Linux and macOS.
//
// lib/ by the tests of __test__/ on this Node, as V8 counts and c8 reports it; core/ and src/ by those and by cargo's
// tests, as the compiler counts it: that takes rustup's component llvm-tools. `--only` as of `npm test`.
//
// A thread that is terminated, or a process that is killed, writes nothing down: the figures are lower bounds.

const fs = require('fs')
const path = require('path')
const { libraryFile, target } = require('../lib/agent/target')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment, find } = require('./lib/cargo')
const { run, succeed } = require('./lib/child')
const { copyTree } = require('./lib/copy-tree')
const { succeedNpm } = require('./lib/npm')
const setup = require('./setup')

const C8 = 'c8@12.0.0'
const root = path.join(__dirname, '..')
const TARGET = path.join(root, 'target', 'coverage')
/** How many files are listed of which lines were not run. */
const LEAST = 15
const TIMEOUT = 60 * 60 * 1000

/** The compiler's host, and the path of a tool of its component llvm-tools. */
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

/** By file of `core/` and `src/`: how many lines it has that can run, and how many of them did. */
async function rustOf (tool, profiles, [first, ...others]) {
  const all = path.join(profiles, 'all.profdata')
  const files = fs.readdirSync(profiles).filter(name => name.endsWith('.profraw'))
  const options = { cwd: profiles, timeout: TIMEOUT }
  await succeed(tool('llvm-profdata'), ['merge', '--sparse', '--failure-mode=all', '--output', all, ...files], options)
  const objects = others.flatMap(file => ['--object', file])
  const sources = ['--sources', path.join(root, 'core', 'src'), path.join(root, 'src')]
  const report = ['export', '--summary-only', '--instr-profile', all, first, ...objects, ...sources]
  const [{ files: reported }] = JSON.parse(await succeed(tool('llvm-cov'), report, options)).data
  const each = ({ filename, summary: { lines } }) => ({ file: path.relative(root, filename), ...lines })
  return reported.map(each).filter(({ file }) => !file.endsWith('/tests.rs'))
}

/** By file of `lib/`, the same. */
async function javascriptOf (copy, folder) {
  const places = ['--temp-directory', folder, '--reports-dir', folder, '--reporter', 'json-summary']
  const options = ['--merge-async', '--all', '--src', 'lib', '--include', 'lib/**']
  const c8 = ['exec', '--yes', '--package', C8, '--', 'c8', 'report', ...places, ...options]
  await succeedNpm(c8, { cwd: copy, timeout: TIMEOUT })
  const { total, ...files } = JSON.parse(fs.readFileSync(path.join(folder, 'coverage-summary.json'), 'utf8'))
  const entry = ([file, { lines }]) => ({ file: path.relative(copy, file), count: lines.total, covered: lines.covered })
  return Object.entries(files).map(entry)
}

const percent = (covered, count) => (100 * covered / count).toFixed(1).padStart(5)

/** Prints the figure of each part, and the files of which most lines were not run. */
function print (files) {
  for (const part of ['lib/', 'core/src/', 'src/']) {
    const sum = key => files.filter(({ file }) => file.startsWith(part)).reduce((total, each) => total + each[key], 0)
    console.log(`${part.padEnd(9)} ${percent(sum('covered'), sum('count'))} % of ${sum('count')} lines`)
  }
  console.log('\nthe least:')
  const missed = ({ count, covered }) => count - covered
  const least = files.sort((one, other) => missed(other) - missed(one)).slice(0, LEAST)
  for (const each of least) {
    console.log(`  ${percent(each.covered, each.count)} %  ${each.file}: ${missed(each)} lines were not run`)
  }
}

async function main () {
  const { only } = argumentsOf(__filename, {
    only: { type: 'string', default: '^(atomics|locks|named|install|ends)/' }
  })
  await setup.installDependencies()
  const { host, tool } = await toolchain()
  const copy = copyTree('coverage-')
  try {
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
    print([...await javascriptOf(copy, folder), ...await rustOf(tool, profiles, [library, ...programs])])
  } finally {
    fs.rmSync(copy, { recursive: true, force: true })
  }
}

command(main)
