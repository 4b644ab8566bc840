'use strict'
// subjects: none
// nodes: >=20.19 (the runner itself does)

// How `npm test` judges test files that do not end as they should, reads what its steps print, and reports what it has found.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { runSuite, subjectsOf } = require('../../scripts/lib/node-suites')
const { Report } = require('../../scripts/lib/report')
const { countCargoTest } = require('../../scripts/lib/rust-steps')
const { countScript, plannedSteps, runStep } = require('../../scripts/lib/steps')
const { parseArguments, shortList, sizeOn } = require('../../scripts/lib/test-arguments')
const testFile = require('../../scripts/lib/test-file')
const nodes = require('../../scripts/nodes')

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
    if (process.env.TEST_SIZE !== 'small') throw new Error('TEST_SIZE is ' + process.env.TEST_SIZE)
    ${closing(1, 0, 0)}`
  const result = await testFile.run(declare(t, source), node, 'force', { size: 'small' })
  assert.strictEqual(result.problem, null, result.output)
})

test('the declarations of a file are read', t => {
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

test('the counts of cargo test are added up', () => {
  const output = `
test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s`
  assert.deepStrictEqual(countCargoTest(output), { passed: 7, failed: 3, skipped: 1 })
  assert.strictEqual(countCargoTest('error: could not compile'), null)
})

test('the counts and the skipped tests of a script are read', () => {
  const output = 'ok - one (0.1 s)\nskip - two # no network\n3 passed, 1 failed, 1 skipped\n'
  assert.deepStrictEqual(countScript(output), { passed: 3, failed: 1, skipped: 1, skips: [{ what: 'two', reason: 'no network' }] })
  assert.strictEqual(countScript('3 passed, 1 failed\nand more'), null)
})

// ——— arguments ———

test('without arguments the oldest, the running and the newest Node are tested, with --all every one', () => {
  const list = ['10.24.1', '20.20.2', '26.10.0']
  assert.deepStrictEqual(shortList(list, '20.20.2'), ['10.24.1', '20.20.2', '26.10.0'])
  assert.deepStrictEqual(shortList(list, '22.1.0'), ['10.24.1', '22.1.0', '26.10.0'])
  assert.deepStrictEqual(shortList(list, '26.10.0'), ['10.24.1', '26.10.0'])
  assert.deepStrictEqual(parseArguments([]).versions, shortList(nodes.versions))
  assert.deepStrictEqual(parseArguments(['--all']).versions, nodes.versions)
  const chosen = parseArguments(['--all', '--node', '14,current', '--subject', 'none,force', '--only', 'lock', '--jobs', '3', '--no-rust', '--no-setup'])
  assert.deepStrictEqual(chosen, { all: true, versions: ['14', 'current'], subjects: [null, 'force'], only: /lock/, size: null, jobs: 3, rust: false, setup: false })
})

test('long tests are small, with --all full where a short run goes, too, and as --size says', () => {
  const { versions } = parseArguments(['--all'])
  const full = options => versions.filter(version => sizeOn(version, parseArguments(options)) === 'full')
  assert.deepStrictEqual(full([]), [])
  assert.deepStrictEqual(full(['--all']), versions.filter(version => shortList(versions).includes(version)))
  assert.deepStrictEqual(full(['--all', '--size', 'full']), versions)
  assert.deepStrictEqual(full(['--all', '--size', 'small']), [])
})

test('an argument that means nothing is an error with the usage', () => {
  assert.throws(() => parseArguments(['--fast']), /'--fast'[^]*\nusage: npm test/)
  assert.throws(() => parseArguments(['--node']), /--node[^]*\nusage: npm test/)
  assert.throws(() => parseArguments(['--node', '13']), /--node 13: no Node version '13'[^]*\nusage: npm test/)
  assert.throws(() => parseArguments(['--subject', 'all']), /--subject all: one or more of none, export, installed, force are allowed\n\nusage/)
  assert.throws(() => parseArguments(['--size', 'huge']), /--size huge: one of full, small is allowed\n\nusage/)
  assert.throws(() => parseArguments(['--jobs', '0']), /--jobs 0: a number above 0 is allowed\n\nusage/)
})

// ——— steps ———

test('with --only, only Rust runs beside the files; without Rust, nothing is tested that is published', () => {
  const wheres = options => Object.values(plannedSteps({ all: false, only: null, rust: true, ...options }))
    .map(lanes => lanes.map(lane => [...new Set(lane.map(({ where }) => where))].join(' ')))
  assert.deepStrictEqual(wheres({ all: true }), [['rust', 'lint types spec instructions'], ['tarballs', 'engines consumers programs runtimes']])
  assert.deepStrictEqual(wheres({}), [['rust', 'lint types'], ['tarballs', 'engines consumers']])
  assert.deepStrictEqual(wheres({ rust: false, setup: true }), [['', 'build lint types'], []])
  assert.deepStrictEqual(wheres({ only: /x/ }), [['rust', ''], []])
})

test('Bun and Deno run the long tests at the size that is asked for, otherwise at the small one, as most versions of Node do', () => {
  const shown = size => plannedSteps({ all: true, only: null, rust: true, size }).after[1].slice(-1).map(step => step.shown)
  assert.deepStrictEqual(shown(null), ['node scripts/runtimes.js --size small'])
  assert.deepStrictEqual(shown('full'), ['node scripts/runtimes.js --size full'])
})

const steps = [
  { name: 'that passes', source: '', row: { passed: 1, failed: 0, skipped: 0 } },
  { name: 'that fails', source: 'process.exitCode = 3', row: { passed: 0, failed: 1, skipped: 0 }, failure: 'the command: exit code 3' },
  { name: 'that counts', source: 'console.log("2 passed, 0 failed")', count: countScript, row: { passed: 2, failed: 0, skipped: 0 } },
  {
    name: 'that does not say its counts',
    source: '',
    count: countScript,
    row: { passed: 0, failed: 1, skipped: 0 },
    failure: 'the command: its output does not say how many tests there were'
  },
  { name: 'whose tool is missing', source: '', missing: () => 'no linter', row: { passed: 0, failed: 0, skipped: 1 } }
]

for (const { name, source, missing, count, row: expected, failure } of steps) {
  test(`a step ${name}`, async () => {
    const report = new Report(() => {})
    const command = () => ({ command: process.execPath, args: ['-e', source] })
    const good = await runStep({ where: 'step', what: '', shown: 'the command', command, count, missing }, report)
    assert.strictEqual(good, expected.failed === 0)
    const [{ passed, failed, skipped: skips }] = report.rows
    assert.deepStrictEqual({ passed, failed, skipped: skips }, expected)
    assert.deepStrictEqual(report.failures, failure ? [failure] : [])
  })
}

// ——— suites and the report ———

/** Runs a file as part of a suite on this Node; gives the lines that were printed, and whether all is well. */
async function suiteOf (file) {
  const lines = []
  const report = new Report(text => { lines.push(...text.split('\n')) })
  await report.part('the suite', () => runSuite('current', [file], { subjects: [null], size: 'small', jobs: 1, report }))
  return { ok: report.close(), lines }
}

test('a test that passes only when it is run again is listed by name right before the closing line', async t => {
  const file = declare(t, `// subjects: none
    const fs = require('fs')
    const seen = __filename + '.seen'
    const again = fs.existsSync(seen)
    fs.writeFileSync(seen, '')
    console.log(again ? 'ok 1 - it holds (1 ms)' : 'not ok 1 - it holds')
    console.log('# ' + JSON.stringify({ passed: again ? 1 : 0, failed: again ? 0 : 1, skipped: 0 }))
    process.exitCode = again ? 0 : 1`)
  const { ok, lines } = await suiteOf(file)
  assert.strictEqual(ok, true, lines.join('\n'))
  assert.deepStrictEqual(lines.slice(-4), [
    'passed only when they were run again, alone:', `  it holds (fixture.test.js on Node ${process.versions.node})`, '', '1 passed, 0 failed'
  ])
})

test('a file that fails twice has failed, and the command that repeats it is printed', async t => {
  const { ok, lines } = await suiteOf(declare(t, `// subjects: none\n${closing(1, 1, 0)}process.exitCode = 1`))
  assert.strictEqual(ok, false)
  assert.strictEqual(lines[lines.length - 1], '1 passed, 1 failed')
  assert.ok(lines.includes(`       again: npm test -- --no-rust --node ${process.versions.node} --subject none --only fixture.test.js`), lines.join('\n'))
  assert.ok(!lines.some(line => /run again, alone/.test(line)))
})

test('the report lists how long each part took, and the slowest files', async t => {
  const { lines } = await suiteOf(declare(t, `// subjects: none\n${closing(1, 0, 0)}`))
  const after = title => lines[lines.indexOf(title) + 1]
  assert.match(after('time (minutes:seconds):'), /^ +0:0\d {2}the suite$/)
  assert.match(after('the slowest files:'), /^ +0:0\d {2}fixture\.test\.js on Node /)
})

test('a file that is skipped on this Node is reported with its reason, and a run of nothing is no success', async t => {
  const { ok, lines } = await suiteOf(declare(t, '// subjects: none\n// nodes: <10 (it is old)\n'))
  assert.strictEqual(ok, false)
  assert.ok(lines.includes('  needs Node <10: it is old'), lines.join('\n'))
  assert.deepStrictEqual(lines.slice(-3), ['no test ran', '', '0 passed, 0 failed, 1 skipped'])
})

test('a line of progress has the time, how many files have been run, and what is running', async () => {
  const report = new Report(() => {})
  report.begun -= 754.4e3
  await report.part('a', () => {}, report.files)
  await report.part('node 10', () => report.part('b', () => assert.strictEqual(report.progress(), '... 12:34, files run: 1, node 10, b'), report.files))
})

test('a long file is run with one subject in a small run, and with all of them in a full one', t => {
  const [long, short] = ['// long: it waits\n', ''].map(source => declare(t, source))
  const runs = (file, size, subjects = [null, 'export', 'installed', 'force']) =>
    subjectsOf(file, subjects, size)
  assert.deepStrictEqual(runs(short, 'small'), ['export', 'installed', 'force'])
  assert.deepStrictEqual(runs(long, 'full'), ['export', 'installed', 'force'])
  assert.deepStrictEqual(runs(long, 'small'), ['force'])
  assert.deepStrictEqual(runs(long, 'small', ['export']), ['export'])
})

function declare (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-runner-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'fixture.test.js')
  fs.writeFileSync(file, source)
  return testFile.read(file)
}
