'use strict'

// `npm run sanitize -- thread | address | node | valgrind [--toolchain name]`: the tests under a sanitizer of the compiler, or under
// valgrind. Linux x64. `--toolchain`: one that rustup lists, instead of nightly; a stable one is told to allow what only nightly does.
//
//   thread    the Rust tests under ThreadSanitizer: queue, lines and service with real threads. The standard library has to be compiled
//             for it, too, or it reports each contended mutex: that takes rustup's component rust-src, and is skipped without it. Where
//             rustup cannot fetch it, Debian's package rust-src of the same version has it: usr/src/rustc-*/library is put into the
//             toolchain's lib/rustlib/src/rust
//   address   the same under AddressSanitizer and LeakSanitizer
//   node      the library built for AddressSanitizer, in this Node, with the sanitizer's runtime preloaded (gcc's libasan): tests of
//             __test__/ that end threads in the midst of everything, and the soak's processes. Leaks of Node itself are many, so those are
//             only looked for by `address`
//   valgrind  the Rust tests under memcheck: no invalid access, no definite leak. Needs no nightly compiler
//
// The last line is `N passed, N failed[, N skipped]`.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, find } = require('./lib/cargo')
const { run, succeed } = require('./lib/child')
const { copyTree } = require('./lib/copy-tree')
const { Results } = require('./lib/results')
const { countCargoTest } = require('./lib/rust-steps')
const testFile = require('./lib/test-file')

const root = path.join(__dirname, '..')
const TARGET = 'x86_64-unknown-linux-gnu'
const PROGRAMS = ['--lib', '--test', 'queue', '--test', 'line', '--test', 'memories', '--test', 'names', '--test', 'deadlock']
const NODE_TESTS = ['termination', 'given-to-the-dying', 'stress', 'async-lock-owner-death', 'condition', 'robust-list', 'settling']
const TIMEOUT = 1200000

let toolchain = 'nightly'

const environment = (sanitizer, more) => ({
  ...process.env,
  CARGO_TERM_COLOR: 'never',
  RUSTC_BOOTSTRAP: '1',
  RUSTFLAGS: `-Zsanitizer=${sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer`,
  ...more
})

async function cargoOf (args, env) {
  const ended = await run(find('rustup'), ['run', toolchain, 'cargo', ...args], { cwd: root, env, timeout: TIMEOUT, echo: true })
  if (ended.error) throw ended.error
  return ended
}

/** Whether the standard library's source is there, to be compiled with the sanitizer. */
async function hasSource () {
  const { stdout } = await run(find('rustup'), ['run', toolchain, 'rustc', '--print', 'sysroot'], {})
  return fs.existsSync(path.join(stdout.trim(), 'lib', 'rustlib', 'src', 'rust', 'library', 'Cargo.lock'))
}

async function rustTests (results, sanitizer, options, more = []) {
  const args = ['test', ...more, '--locked', '--no-fail-fast', '--target', TARGET, '--target-dir', `target/${sanitizer}`, ...PROGRAMS]
  const { code, output } = await cargoOf(args, environment(sanitizer, options))
  const reports = output.match(/^SUMMARY: .*$/gm) || []
  for (const report of new Set(reports)) console.log(report)
  const counted = countCargoTest(output)
  if (counted === null) throw new Error(output.slice(-3000))
  results.passed += counted.passed
  results.failed += Math.max(counted.failed + reports.length, code === 0 ? 0 : 1)
}

async function underNode (results) {
  const built = await cargoOf(['rustc', '--locked', '--lib', '--crate-type', 'cdylib', '--target', TARGET, '--target-dir', 'target/address'], environment('address'))
  if (built.code !== 0) throw new Error(built.output.slice(-3000))
  // A tree of its own, whose library is the instrumented one.
  const copy = copyTree('sanitize-')
  try {
    fs.copyFileSync(path.join(root, 'target', 'address', TARGET, 'debug', 'libatomics_waitasync.so'), path.join(copy, 'atomics-waitasync.linux-x64-gnu.node'))
    await testsIn(results, copy)
  } finally {
    fs.rmSync(copy, { recursive: true, force: true })
  }
}

/** Runs tests of the tree, and a soak, with gcc's runtime of the sanitizer preloaded. */
async function testsIn (results, copy) {
  const runtime = (await run('gcc', ['-print-file-name=libasan.so'], {})).stdout.trim()
  Object.assign(process.env, { LD_PRELOAD: runtime, ASAN_OPTIONS: 'detect_leaks=0:handle_segv=0:abort_on_error=0:exitcode=99' })
  const judge = (problem, output) => {
    if (problem !== null || output.includes('AddressSanitizer')) throw new Error(`${problem}\n${output.slice(-4000)}`)
  }
  for (const name of NODE_TESTS) {
    await results.of(name, async () => {
      const declared = testFile.read(path.join(copy, '__test__', `${name}.test.js`))
      const ended = await testFile.run(declared, { path: process.execPath, flags: [] }, declared.subjects[declared.subjects.length - 1], { size: 'small' })
      judge(ended.problem, ended.output)
      return `${ended.passed} passed`
    })
  }
  await results.of('soak of 30 s', async () => {
    const { code, output } = await run(process.execPath, ['--expose-gc', path.join(copy, 'scripts', 'soak', 'main.js'), '30', '1'], { cwd: copy, timeout: TIMEOUT })
    judge(code === 0 ? null : `exit code ${code}`, output)
  })
}

async function underValgrind (results) {
  if (find('valgrind') === null) return results.skip('valgrind', 'it is not installed')
  const built = await run(cargo(), ['test', '--locked', '--no-run', '--message-format=json', ...PROGRAMS], { cwd: root, env: process.env, timeout: TIMEOUT })
  const programs = built.stdout.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line).executable).filter(Boolean)
  if (built.code !== 0 || programs.length === 0) throw new Error(built.output.slice(-3000))
  // Valgrind takes a hundred times as long.
  const env = { ...process.env, PROPTEST_CASES: '20' }
  for (const program of programs) {
    // The service's tests are of time.
    const skipped = path.basename(program).startsWith('atomics') ? ['--skip', 'service'] : []
    const args = ['--quiet', '--error-exitcode=9', '--leak-check=full', '--show-leak-kinds=definite', '--errors-for-leak-kinds=definite', program, ...skipped]
    await results.of(path.basename(program), () => succeed(find('valgrind'), args, { cwd: root, env, timeout: TIMEOUT }).then(() => {}))
  }
}

const USAGE = 'npm run sanitize -- thread | address | node | valgrind [--toolchain name]'

const ways = {
  thread: async results => await hasSource()
    ? rustTests(results, 'thread', { TSAN_OPTIONS: 'halt_on_error=0' }, ['-Zbuild-std'])
    : results.skip('thread', `the toolchain ${toolchain} has no rust-src`),
  address: results => rustTests(results, 'address', { ASAN_OPTIONS: 'detect_leaks=1' }),
  node: underNode,
  valgrind: underValgrind
}

async function main () {
  const given = argumentsOf(USAGE, { toolchain: { type: 'string', default: toolchain } }, { most: 1 })
  const [way] = given.positionals
  if (!(way in ways)) throw new Error(`usage: ${USAGE}`)
  toolchain = given.toolchain
  const results = new Results()
  await ways[way](results)
  results.close()
}

command(main)
