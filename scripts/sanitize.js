'use strict'

// `npm run sanitize -- thread | address | node [--toolchain name]`: the tests under a sanitizer of the compiler. Linux
// x64. `--toolchain`: one that rustup lists, instead of nightly; a stable one is told to allow features of nightly.
//
//   thread    the Rust tests under ThreadSanitizer: queue, lines and service with real threads. The standard library
//             has to be compiled for it, too, or it reports each contended mutex: that takes rustup's component
//             rust-src. Where rustup cannot fetch it, Debian's package rust-src of the same version has it:
//             usr/src/rustc-*/library is put into the toolchain's lib/rustlib/src/rust
//   address   the same under AddressSanitizer and LeakSanitizer
//   node      the library built for AddressSanitizer, in this Node, with the sanitizer's runtime preloaded (gcc's
//             libasan): tests of __test__/ that end threads in the midst of everything, and the soak's processes. Leaks
//             of Node itself are many, so those are only looked for by `address`

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment } = require('./lib/cargo')
const { run, succeed } = require('./lib/child')
const { Results } = require('./lib/results')
const { countCargoTest } = require('./lib/rust-steps')
const { withCopy } = require('./lib/scratch')

const root = path.join(__dirname, '..')
const TARGET = 'x86_64-unknown-linux-gnu'
const PROGRAMS = '--workspace --lib --test queue --test line --test memories --test names --test deadlock'.split(' ')
const NODE_TESTS = [
  'ends/termination', 'ends/grant-to-terminated', 'ends/owner-death', 'atomics/stress', 'locks/condition',
  'locks/robust-list', 'locks/settling'
]
/** Those that expect freed memory to be given out again, which sanitizers put off. */
const NOT_HERE = ['--skip', 'was_freed', '--skip', 'were_freed']
const TIMEOUT = 1200000

/** Variables for a compiler that instruments the code. */
const sanitizer = (name, toolchain) => ({
  RUSTUP_TOOLCHAIN: toolchain,
  RUSTC_BOOTSTRAP: '1',
  RUSTFLAGS: `-Zsanitizer=${name} -Cunsafe-allow-abi-mismatch=sanitizer`
})

/** The ways of running the Rust tests: variables, and options of cargo. */
const RUST_TESTS = {
  thread: toolchain => ({
    env: { ...sanitizer('thread', toolchain), TSAN_OPTIONS: 'halt_on_error=0' },
    options: ['-Zbuild-std']
  }),
  address: toolchain => ({ env: { ...sanitizer('address', toolchain), ASAN_OPTIONS: 'detect_leaks=1' } })
}

/** Returns cargo's options. Without a named target it would instrument the build scripts, too. */
const places = way => ['--locked', '--target', TARGET, '--target-dir', `target/${way}`]

async function rustTests (results, way, { env, options = [] }) {
  const args = ['test', ...options, '--no-fail-fast', ...places(way), ...PROGRAMS, '--', ...NOT_HERE]
  const { code, output } = await run(cargo(), args, { cwd: root, env: environment(env), timeout: TIMEOUT, echo: true })
  const counted = countCargoTest(output)
  if (counted === null || code !== 0) console.log(output)
  const reports = output.match(/^SUMMARY: .*$/gm) || []
  results.passed += counted ? counted.passed : 0
  results.failed += Math.max((counted ? counted.failed : 0) + reports.length, code === 0 ? 0 : 1)
}

async function underNode (results, env) {
  const building = { cwd: root, env: environment(env), timeout: TIMEOUT, echo: true }
  await succeed(cargo(), ['build', '--package', 'atomics-waitasync', ...places('address')], building)
  // A tree of its own, whose library is the instrumented one.
  await withCopy(async copy => {
    fs.copyFileSync(
      path.join(root, 'target', 'address', TARGET, 'debug', 'libatomics_waitasync.so'),
      path.join(copy, 'atomics-waitasync.linux-x64-gnu.node')
    )
    // gcc's runtime of the sanitizer.
    const LD_PRELOAD = (await succeed('gcc', ['-print-file-name=libasan.so'])).trim()
    const ASAN_OPTIONS = 'detect_leaks=0:handle_segv=0:abort_on_error=0:exitcode=99'
    const options = { cwd: copy, env: { ...process.env, LD_PRELOAD, ASAN_OPTIONS }, timeout: TIMEOUT }
    const tests = ['--no-rust', '--no-setup', '--node', 'current', '--subject', 'force', '--jobs', '1']
    for (const [name, ...args] of [
      ['tests', 'scripts/test.js', ...tests, '--only', `^(${NODE_TESTS.join('|')})\\.test`],
      ['soak of 30 s', '--expose-gc', '__test__/soak/main.js', '30', '1']
    ]) {
      await results.of(name, async () => {
        const said = await succeed(process.execPath, args, options)
        if (said.includes('AddressSanitizer')) throw new Error(said)
        return said.trim().split('\n').pop()
      })
    }
  })
}

async function main () {
  const options = { toolchain: { type: 'string', default: 'nightly' } }
  const { positionals: [way], toolchain } = argumentsOf(__filename, options, { most: 1 })
  const ways = [...Object.keys(RUST_TESTS), 'node']
  if (!ways.includes(way)) throw new Error(`one of ${ways.join(', ')} is needed`)
  const results = new Results()
  if (way === 'node') await underNode(results, sanitizer('address', toolchain))
  else await rustTests(results, way, RUST_TESTS[way](toolchain))
  results.close()
}

command(main)
