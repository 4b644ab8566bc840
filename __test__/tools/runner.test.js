'use strict'
// nodes: running (the runner itself does)

// How `npm test` judges test files that do not end as they should, and which Nodes it runs them on.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { runSuites } = require('../../scripts/lib/node-suites')
const { Report } = require('../../scripts/lib/report')
const { countCargoTest } = require('../../scripts/lib/rust-steps')
const { countScript, runStep } = require('../../scripts/lib/steps')
const { nodesOfTheDay } = require('../../scripts/lib/test-arguments')
const testFile = require('../../scripts/lib/test-file')

const node = { path: process.execPath, flags: [] }
const closing = (passed, failed, skipped) => `console.log('# ${JSON.stringify({ passed, failed, skipped })}')\n`

/** A test file of this source, in a folder of its own. */
function declare (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-runner-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'fixture.test.js')
  fs.writeFileSync(file, source)
  return testFile.read(file)
}

const child = `require('child_process')
  .spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).unref()\n`
const eat = 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 22, 1))'
const EXIT_1 = 'ended with exit code 1, but without its closing line'
const [CRASH, TOO_MUCH] = ['crashed with SIGKILL', 'was killed: it took too much memory']
const skips = {
  [CRASH]: process.platform === 'win32' && 'it has no signals',
  [TOO_MUCH]: process.platform !== 'linux' && 'needs /proc'
}
/** By its name, what a file is, what is counted of it, and what is wrong. */
const runs = {
  'a file that passes': [closing(2, 0, 0), [2, 0], null],
  'a file with failures': [`${closing(2, 3, 0)}process.exitCode = 1`, [2, 3], '3 failed'],
  'a crash after the closing line': [`${closing(1, 0, 0)}process.kill(process.pid, 'SIGKILL')`, [1, 1], CRASH],
  'a crash before the closing line': ["process.kill(process.pid, 'SIGKILL')", [0, 1], CRASH],
  'a hang': ['// timeout: 1\nsetInterval(() => {}, 1000)', [0, 1], 'was killed: not over after 1 s'],
  'a hang after the closing line': [
    `// timeout: 3\n${closing(1, 0, 0)}for (;;);`,
    [1, 1],
    'was killed: not over after 3 s'
  ],
  'output without end': [
    '// timeout: 2\nfor (;;) require("fs").writeSync(1, Buffer.alloc(65536, 255))',
    [0, 1],
    'was killed: not over after 2 s'
  ],
  'no closing line': ["console.log('ok 1 - fine')", [0, 1], 'ended with exit code 0, but without its closing line'],
  'more after the closing line': [`${closing(1, 0, 0)}console.log(1); process.exitCode = 1`, [0, 1], EXIT_1],
  'an exit code that contradicts the closing line': [
    `${closing(1, 0, 0)}process.exitCode = 7`,
    [1, 1],
    'ended with exit code 7 after its closing line'
  ],
  'failures with exit code 0': [closing(1, 1, 0), [1, 2], 'ended with exit code 0 after its closing line'],
  'no test': [closing(0, 0, 0), [0, 1], 'ran no test'],
  'a file that does not parse': ['const', [0, 1], EXIT_1],
  'a process that is left behind': [
    child + closing(1, 0, 0),
    [1, 1],
    'left a process behind that held its output open'
  ],
  'a file that takes more memory than it may': [eat, [0, 1], TOO_MUCH],
  'a file whose process takes more memory than it may': [
    `require('child_process').spawnSync(process.execPath, ['-e', '${eat}'])`,
    [0, 1],
    TOO_MUCH
  ]
}

for (const [name, [source, counts, problem]] of Object.entries(runs)) {
  test(`${name}: ${counts[1]} failed`, { skip: skips[problem] }, async t => {
    const { output, ...result } = await testFile.run(
      declare(t, source),
      node,
      null,
      problem === TOO_MUCH ? { memory: 2 ** 28 } : {}
    )
    assert.strictEqual(result.problem, problem, JSON.stringify(result))
    assert.deepStrictEqual([result.passed, result.failed], counts)
    assert.ok(output.length < 4 * 1024 * 1024, `${output.length} characters were kept`)
  })
}

test('a declaration that means nothing is an error that names it', t => {
  for (const [source, message] of [
    ['// subjects: some', /fixture\.test\.js: \/\/ subjects: some: 'some' is not one of/],
    ['// nodes: 16', /'16' must be like/],
    ['// oldest: force', /a reason in parentheses is needed/],
    ['// timeout: long', /must be a number of seconds/]
  ]) assert.throws(() => declare(t, source), message)
})

test('every Node comes soon, whether there is a run every day, every week, or every other one', () => {
  const all = Array.from({ length: 12 }, (_, n) => `${n}.0.0`)
  for (const every of [1, 2, 7, 14]) {
    for (let length = 6; length <= all.length; length++) {
      const versions = all.slice(0, length)
      const runs = Array.from({ length: 2 * length }, (_, n) =>
        nodesOfTheDay(versions, { running: '1.0.0', day: 20000 + every * n })
      )
      for (const [one, other] of runs) assert.notStrictEqual(one, other)
      const others = versions.filter((_, n) => n > 1 && n < length - 1)
      assert.deepStrictEqual([...new Set(runs.flat())].sort(), others.sort(), `${length} versions, every ${every} days`)
    }
  }
})

test('an output that does not say its counts is a failure: of cargo test, and of a script', async () => {
  const line = (how, counts) =>
    `test result: ${how}. ${counts} ignored; 0 measured; 7 filtered out; finished in 0.00s\n`
  const text = `\n${line('ok', '5 passed; 0 failed; 1')}${line('FAILED', '2 passed; 3 failed; 0')}`
  assert.deepStrictEqual(countCargoTest(text), { passed: 7, failed: 3, skipped: 1 })
  assert.strictEqual(countCargoTest('error: could not compile'), null)
  assert.strictEqual(countScript('3 passed, 1 failed\nand more'), null)
  const report = new Report(() => {})
  const command = () => ({ command: process.execPath, args: ['-e', ''] })
  assert.strictEqual(
    await runStep({ where: 'step', what: '', shown: 'it', command, count: countScript }, report),
    false
  )
  assert.deepStrictEqual(report.failures, ['it: its output does not say how many tests there were'])
})

/** Runs a file as part of a suite on this Node; gives the lines that were printed, and whether all is well. */
async function suiteOf (file) {
  const lines = []
  const report = new Report(text => { lines.push(...text.split('\n')) })
  await runSuites([{ version: 'current', files: [file], subjects: [null], size: 'small' }], { jobs: 1, report })
  return { ok: report.close(), lines }
}

test('a test that passes only when it is run again is listed by name right before the closing line', async t => {
  const { ok, lines } = await suiteOf(declare(t, `// subjects: none
    const fs = require('fs')
    const again = fs.existsSync(__filename + '.seen')
    fs.writeFileSync(__filename + '.seen', '')
    console.log(again ? 'ok 1 - it holds (1 ms)' : 'not ok 1 - it holds')
    console.log('# ' + JSON.stringify({ passed: again ? 1 : 0, failed: again ? 0 : 1, skipped: 0 }))
    process.exitCode = again ? 0 : 1`))
  assert.deepStrictEqual(
    [ok, lines.slice(-4)],
    [
      true,
      [
        'passed only when they were run again, alone:',
        `  it holds (fixture.test.js on Node ${process.versions.node})`,
        '',
        '1 passed, 0 failed'
      ]
    ]
  )
})

test('a file that fails twice has failed, and is told with a command; a run of nothing is no success', async t => {
  const { ok, lines } = await suiteOf(declare(t, `// subjects: none\n${closing(1, 1, 0)}process.exitCode = 1`))
  assert.deepStrictEqual([ok, lines[lines.length - 1]], [false, '1 passed, 1 failed'])
  const again = `npm test -- --no-rust --node ${process.versions.node} --subject none --only fixture.test.js`
  assert.ok(lines.includes(`       again: ${again}`), lines.join('\n'))
  const none = await suiteOf(declare(t, '// subjects: none\n// nodes: <10 (it is old)\n'))
  assert.deepStrictEqual([none.ok, none.lines.slice(-3)], [false, ['no test ran', '', '0 passed, 0 failed, 1 skipped']])
})
