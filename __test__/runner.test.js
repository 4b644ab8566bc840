'use strict'
// subjects: none
// nodes: >=16 (the runner itself does)

// How `npm test` judges test files that do not end as they should, and how it reads what cargo prints.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('./harness')
const { countCargoTest, countNextest } = require('../scripts/lib/rust-steps')
const testFile = require('../scripts/lib/test-file')

const node = { path: process.execPath, flags: [] }
const closing = (passed, failed, skipped) => `console.log('# ${JSON.stringify({ passed, failed, skipped })}')\n`

const runs = [
  { name: 'a file that passes', source: closing(2, 0, 0), passed: 2, failed: 0, problem: null },
  {
    name: 'a file with failures',
    source: `${closing(2, 3, 0)}process.exitCode = 1`,
    passed: 2, failed: 3, problem: /^3 failed$/
  },
  {
    name: 'a crash after the closing line',
    source: `${closing(1, 0, 0)}process.abort()`,
    passed: 1, failed: 1, problem: /^crashed with SIGABRT$|exit code/
  },
  { name: 'a crash before the closing line', source: 'process.abort()', failed: 1, problem: /^crashed with SIGABRT$|exit code/ },
  { name: 'a hang', source: '// timeout: 1\nsetInterval(() => {}, 1000)', failed: 1, problem: /^was killed: not over after 1 s$/ },
  {
    name: 'a hang of the thread after the closing line',
    source: `// timeout: 3\n${closing(1, 0, 0)}for (;;);`,
    passed: 1, failed: 1, problem: /^was killed: not over after 3 s$/
  },
  { name: 'no closing line', source: "console.log('ok 1 - fine')", failed: 1, problem: /^ended with exit code 0, but without its closing line$/ },
  { name: 'nothing at all', source: '', failed: 1, problem: /without its closing line$/ },
  {
    name: 'garbage after the closing line',
    source: `${closing(1, 0, 0)}console.log('and more')`,
    failed: 1, problem: /without its closing line$/
  },
  {
    name: 'binary garbage without end',
    source: '// timeout: 2\nfor (;;) require("fs").writeSync(1, Buffer.alloc(65536, 255))',
    failed: 1, problem: /^was killed/
  },
  {
    name: 'an exit code that contradicts the closing line',
    source: `${closing(1, 0, 0)}process.exitCode = 7`,
    passed: 1, failed: 1, problem: /^ended with exit code 7 after its closing line$/
  },
  {
    name: 'failures with exit code 0',
    source: closing(1, 1, 0),
    passed: 1, failed: 2, problem: /^ended with exit code 0 after its closing line$/
  },
  { name: 'no test', source: closing(0, 0, 0), failed: 1, problem: /^ran no test$/ },
  { name: 'a file that does not parse', source: 'const', failed: 1, problem: /^ended with exit code 1, but without its closing line$/ },
  {
    name: 'a process that is left behind',
    source: `require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).unref()
      ${closing(1, 0, 0)}`,
    passed: 1, failed: 1, problem: /^left a process behind/
  }
]

for (const { name, source, passed = 0, failed, problem } of runs) {
  test(`${name}: ${failed} failed`, async t => {
    const result = await testFile.run(declare(t, source), node, null)
    const { output, ...rest } = result
    const shown = JSON.stringify(rest)
    if (problem === null) assert.strictEqual(result.problem, null, shown)
    else assert.match(String(result.problem), problem, shown)
    assert.strictEqual(result.failed, failed, shown)
    if (passed > 0) assert.strictEqual(result.passed, passed, shown)
    assert.ok(output.length < 4 * 1024 * 1024, `${output.length} characters were kept`)
  })
}

test('a Node that cannot be started is a failure', async t => {
  const result = await testFile.run(declare(t, closing(1, 0, 0)), { path: path.join(os.tmpdir(), 'no-such-node'), flags: [] }, null)
  assert.match(result.problem, /^could not be started/)
  assert.strictEqual(result.failed, 1)
})

test('the reasons of skipped tests are read', async t => {
  const source = `console.log('skip 1 - the one # no ESM here')\n${closing(0, 0, 1)}`
  const result = await testFile.run(declare(t, source), node, null)
  assert.deepStrictEqual(result.skips, [{ name: 'the one', reason: 'no ESM here' }])
  assert.strictEqual(result.failed, 0)
})

test('a file runs with its subject and its flags, and without the NODE_OPTIONS of the runner', async t => {
  const before = process.env.NODE_OPTIONS
  process.env.NODE_OPTIONS = '--no-deprecation'
  t.after(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS
    else process.env.NODE_OPTIONS = before
  })
  const source = `// flags: --expose-gc --stack-size=900
    if (typeof gc !== 'function' || process.execArgv.length !== 2) throw new Error('no flags')
    if (process.noDeprecation || process.env.NODE_OPTIONS !== undefined) throw new Error('NODE_OPTIONS came through')
    if (process.env.SUBJECT !== 'force') throw new Error('SUBJECT is ' + process.env.SUBJECT)
    ${closing(1, 0, 0)}`
  const result = await testFile.run(declare(t, source), node, 'force')
  assert.strictEqual(result.problem, null, result.output)
})

test('what a file declares is read', t => {
  const plain = declare(t, "'use strict'\n")
  assert.deepStrictEqual(plain.subjects, ['export', 'installed', 'force'])
  assert.ok(testFile.admits(plain.nodes, '10.24.1'))

  const declared = declare(t, "'use strict'\n// subjects: installed, force\n// nodes: >=12.22 <16 (a reason)\n// timeout: 9\n// alone: it measures\n")
  assert.deepStrictEqual(declared.subjects, ['installed', 'force'])
  assert.strictEqual(declared.timeout, 9)
  assert.strictEqual(declared.alone, true)
  assert.strictEqual(declared.nodes.reason, 'needs Node >=12.22 <16: a reason')
  const admitted = ['10.24.1', '12.21.9', '12.22.0', '14.0.0', '15.14.0', '16.0.0'].filter(each => testFile.admits(declared.nodes, each))
  assert.deepStrictEqual(admitted, ['12.22.0', '14.0.0', '15.14.0'])
})

test('a declaration that means nothing is an error that names it', t => {
  assert.throws(() => declare(t, '// subjects: some'), /fixture\.test\.js: \/\/ subjects: some: 'some' is not one of/)
  assert.throws(() => declare(t, '// nodes: 16'), /'16' must be like/)
  assert.throws(() => declare(t, '// nodes: (a reason alone)'), /must be like/)
  assert.throws(() => declare(t, '// timeout: long'), /must be a number of seconds/)
})

test('the counts of cargo nextest are read', () => {
  const output = `
        FAIL [   0.004s] demo tests::b
  ------------
       Summary [   0.104s] 13 tests run: 10 passed (1 slow, 1 leaky), 1 failed, 1 exec failed, 1 timed out, 2 skipped
  error: test run failed`
  assert.deepStrictEqual(countNextest(output), { passed: 10, failed: 3, skipped: 2 })
  assert.deepStrictEqual(countNextest('     Summary [   0.003s] 1 test run: 1 passed, 0 skipped'), { passed: 1, failed: 0, skipped: 0 })
  assert.strictEqual(countNextest('error: could not compile'), null)
})

test('the counts of cargo test are added up', () => {
  const output = `
test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s`
  assert.deepStrictEqual(countCargoTest(output), { passed: 7, failed: 3, skipped: 1 })
  assert.strictEqual(countCargoTest('error: could not compile'), null)
})

function declare (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-runner-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'fixture.test.js')
  fs.writeFileSync(file, source)
  return testFile.read(file)
}
