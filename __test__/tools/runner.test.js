'use strict'
// nodes: running (the runner itself does)

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
const { nodesOfTheDay, parseArguments, shortList, sizeOn } = require('../../scripts/lib/test-arguments')
const testFile = require('../../scripts/lib/test-file')
const nodes = require('../../scripts/nodes')

const node = { path: process.execPath, flags: [] }
const closing = (passed, failed, skipped) => `console.log('# ${JSON.stringify({ passed, failed, skipped })}')\n`

function declare (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-runner-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'fixture.test.js')
  fs.writeFileSync(file, source)
  return testFile.read(file)
}

// ——— a file ———

const child = "require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).unref()\n"
/** By its name, what a file is, what is counted of it, and what is wrong. */
const runs = {
  'a file that passes': [closing(2, 0, 0), [2, 0], /^null$/],
  'a file with failures': [`${closing(2, 3, 0)}process.exitCode = 1`, [2, 3], /^3 failed$/],
  'a crash after the closing line': [`${closing(1, 0, 0)}process.abort()`, [1, 1], /^crashed with SIGABRT$|exit code/],
  'a crash before the closing line': ['process.abort()', [0, 1], /^crashed with SIGABRT$|exit code/],
  'a hang': ['// timeout: 1\nsetInterval(() => {}, 1000)', [0, 1], /^was killed: not over after 1 s$/],
  'a hang of the thread after the closing line': [`// timeout: 3\n${closing(1, 0, 0)}for (;;);`, [1, 1], /^was killed: not over after 3 s$/],
  'no closing line': ["console.log('ok 1 - fine')", [0, 1], /^ended with exit code 0, but without its closing line$/],
  'nothing at all': ['', [0, 1], /without its closing line$/],
  'garbage after the closing line': [`${closing(1, 0, 0)}console.log('and more')`, [0, 1], /without its closing line$/],
  'binary garbage without end': ['// timeout: 2\nfor (;;) require("fs").writeSync(1, Buffer.alloc(65536, 255))', [0, 1], /^was killed/],
  'an exit code that contradicts the closing line': [`${closing(1, 0, 0)}process.exitCode = 7`, [1, 1], /^ended with exit code 7 after its closing line$/],
  'failures with exit code 0': [closing(1, 1, 0), [1, 2], /^ended with exit code 0 after its closing line$/],
  'no test': [closing(0, 0, 0), [0, 1], /^ran no test$/],
  'a file that does not parse': ['const', [0, 1], /^ended with exit code 1, but without its closing line$/],
  'a process that is left behind': [child + closing(1, 0, 0), [1, 1], /^left a process behind/]
}

for (const [name, [source, counts, problem]] of Object.entries(runs)) {
  test(`${name}: ${counts[1]} failed`, async t => {
    const { output, ...result } = await testFile.run(declare(t, source), node, null)
    assert.match(String(result.problem), problem, JSON.stringify(result))
    assert.deepStrictEqual([result.passed, result.failed], counts)
    assert.ok(output.length < 4 * 1024 * 1024, `${output.length} characters were kept`)
  })
}

test('a Node that cannot be started is a failure', async t => {
  const result = await testFile.run(declare(t, closing(1, 0, 0)), { path: path.join(os.tmpdir(), 'no-such-node'), flags: [] }, null)
  assert.match(result.problem, /^could not be started/)
  assert.strictEqual(result.failed, 1)
})

test('a file that takes more memory than it may, by itself or by what it starts, is killed', { skip: process.platform !== 'linux' && 'needs /proc' }, async t => {
  const eat = 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 22, 1))'
  for (const source of [eat, `require('child_process').spawnSync(process.execPath, ['-e', '${eat}'])`]) {
    const { problem } = await testFile.run(declare(t, source), node, null, { memory: 2 ** 28 })
    assert.strictEqual(problem, 'was killed: it took too much memory')
  }
})

test('the reasons of skipped tests are read', async t => {
  const result = await testFile.run(declare(t, `console.log('skip 1 - the one # no ESM here')\n${closing(0, 0, 1)}`), node, null)
  assert.deepStrictEqual([result.failed, result.skips], [0, [{ name: 'the one', reason: 'no ESM here' }]])
})

test('a file runs with its subject and its flags, and without the NODE_OPTIONS of the runner', async t => {
  const before = process.env.NODE_OPTIONS
  process.env.NODE_OPTIONS = '--no-deprecation'
  t.after(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS
    else process.env.NODE_OPTIONS = before
  })
  const source = `// flags: --expose-gc --stack-size=900
    const { NODE_OPTIONS, SUBJECT, TEST_SIZE } = process.env
    require('assert').deepStrictEqual([typeof gc, process.execArgv.length, process.noDeprecation, NODE_OPTIONS, SUBJECT, TEST_SIZE],
      ['function', 2, undefined, undefined, 'force', 'small'])
    ${closing(1, 0, 0)}`
  const result = await testFile.run(declare(t, source), node, 'force', { size: 'small' })
  assert.strictEqual(result.problem, null, result.output)
})

test('the declarations of a file are read, and one that means nothing is an error that names it', t => {
  const plain = declare(t, "'use strict'\n")
  assert.deepStrictEqual(plain.subjects, ['export', 'installed', 'force'])
  assert.ok(testFile.admits(plain.nodes, '10.24.1'))
  const head = '// subjects: installed, force\n// nodes: >=12.22 <16 (a reason)\n// oldest: none (another one)\n// timeout: 9\n// alone: it measures\n'
  const declared = declare(t, `'use strict'\n${head}`)
  const { subjects, oldest, timeout, alone, nodes: { reason } } = declared
  assert.deepStrictEqual({ subjects, oldest, timeout, alone, reason }, {
    subjects: ['installed', 'force'], oldest: [null], timeout: 9, alone: true, reason: 'needs Node >=12.22 <16: a reason'
  })
  const admitted = ['10.24.1', '12.21.9', '12.22.0', '14.0.0', '15.14.0', '16.0.0'].filter(each => testFile.admits(declared.nodes, each))
  assert.deepStrictEqual(admitted, ['12.22.0', '14.0.0', '15.14.0'])
  const { nodes: running } = declare(t, '// nodes: running (it is a tool)')
  assert.deepStrictEqual(['10.24.1', process.versions.node].map(version => testFile.admits(running, version)), [false, true])
  assert.deepStrictEqual(testFile.onOldest([plain, declared]).map(file => file.subjects), [[null]])
  for (const [source, message] of [
    ['// subjects: some', /fixture\.test\.js: \/\/ subjects: some: 'some' is not one of/],
    ['// nodes: 16', /'16' must be like/],
    ['// nodes: (a reason alone)', /must be like/],
    ['// oldest: force', /a reason in parentheses is needed/],
    ['// timeout: long', /must be a number of seconds/]
  ]) assert.throws(() => declare(t, source), message)
})

test('a long file is run with one subject in a small run, and with all of them in a full one', t => {
  const [long, short] = ['// long: it waits\n', ''].map(source => declare(t, source))
  const runs = (file, size, subjects = [null, 'export', 'installed', 'force']) => subjectsOf(file, subjects, size).join()
  assert.deepStrictEqual([runs(short, 'small'), runs(long, 'full')], Array(2).fill('export,installed,force'))
  assert.deepStrictEqual([runs(long, 'small'), runs(long, 'small', ['export'])], ['force', 'export'])
})

// ——— arguments ———

test('without arguments the running Node runs all, the oldest what is different there; --ci adds the newest and two others', () => {
  const [oldest, running, newest] = shortList(nodes.versions)
  const shown = args => parseArguments(args).suites.map(({ version, isWhole }) => version + (isWhole ? '' : ' in part'))
  const unique = versions => [...new Set(versions)]
  assert.deepStrictEqual(shown([]), [running, `${oldest} in part`])
  assert.deepStrictEqual(shown(['--only', 'x']), [running])
  assert.deepStrictEqual(shown(['--all']), nodes.versions)
  assert.deepStrictEqual(shown(['--node', '14,current']), ['14', 'current'])
  assert.deepStrictEqual(shown(['--ci', '--node', '14,16']), unique([running, oldest, newest, '14', '16']))
  assert.deepStrictEqual(shown(['--ci']), unique([running, oldest, newest, ...nodesOfTheDay(nodes.versions)]))
  const args = ['--all', '--subject', 'none,force', '--only', 'lock', '--jobs', '3', '--no-rust', '--no-setup']
  const { suites, ...rest } = parseArguments(args)
  assert.deepStrictEqual(rest, { all: true, ci: false, daily: [], subjects: [null, 'force'], only: /lock/, size: null, jobs: 3, rust: false, setup: false })
})

test('every Node comes soon, whether there is a run every day, every week, or every other one', () => {
  const all = Array.from({ length: 12 }, (_, n) => `${n}.0.0`)
  for (const every of [1, 2, 7, 14]) {
    for (let length = 6; length <= all.length; length++) {
      const versions = all.slice(0, length)
      const runs = Array.from({ length: 2 * length }, (_, n) => nodesOfTheDay(versions, { running: '1.0.0', day: 20000 + every * n }))
      for (const [one, other] of runs) assert.notStrictEqual(one, other)
      assert.deepStrictEqual([...new Set(runs.flat())].sort(), versions.filter((_, n) => n > 1 && n < length - 1).sort(), `${length} versions, every ${every} days`)
    }
  }
})

test('long tests are small, with --all full on the oldest, the running and the newest Node, and as --size says', () => {
  const full = options => nodes.versions.filter(version => sizeOn(version, parseArguments(options)) === 'full')
  assert.deepStrictEqual([full([]), full(['--all', '--size', 'small'])], [[], []])
  assert.deepStrictEqual(full(['--all']), nodes.versions.filter(version => shortList(nodes.versions).includes(version)))
  assert.deepStrictEqual(full(['--all', '--size', 'full']), nodes.versions)
})

test('an argument that means nothing is an error with the usage', () => {
  for (const [args, message] of [
    [['--fast'], /'--fast'[^]*\nusage: npm test/],
    [['--node'], /--node[^]*\nusage: npm test/],
    [['--node', '13'], /--node 13: no Node version '13'[^]*\nusage: npm test/],
    [['--subject', 'all'], /--subject all: one or more of none, export, installed, force are allowed\n\nusage/],
    [['--size', 'huge'], /--size huge: one of full, small is allowed\n\nusage/],
    [['--jobs', '0'], /--jobs 0: a number above 0 is allowed\n\nusage/]
  ]) assert.throws(() => parseArguments(args), message)
})

// ——— steps ———

test('with --only nothing runs beside the files; without Rust, nothing is tested that is published', () => {
  const wheres = options => Object.values(plannedSteps({ only: null, rust: true, ...options }))
    .map(lanes => lanes.map(lane => [...new Set(lane.map(({ where }) => where))].join(' ')))
  assert.deepStrictEqual(wheres({ all: true }), [['rust', 'lint types spec instructions'], ['tarballs', 'engines consumers programs runtimes']])
  assert.deepStrictEqual(wheres({ ci: true }), [['rust', 'lint types'], ['tarballs', 'engines consumers']])
  assert.deepStrictEqual(wheres({}), [['rust', 'lint types'], ['tarballs', 'engines']])
  assert.deepStrictEqual(wheres({ rust: false, setup: true }), [['', 'build lint types'], []])
  assert.deepStrictEqual(wheres({ only: /x/, setup: true }), [['', 'build'], []])
  for (const [size, shown] of [[null, 'small'], ['full', 'full']]) {
    assert.strictEqual(plannedSteps({ all: true, only: null, rust: true, size }).after[1].pop().shown, `node scripts/runtimes.js --size ${shown}`)
  }
})

test('the counts of cargo test are added up, and those of a script are read, with what it skips', () => {
  const line = (how, counts) => `test result: ${how}. ${counts} ignored; 0 measured; 7 filtered out; finished in 0.00s\n`
  assert.deepStrictEqual(countCargoTest(`\n${line('ok', '5 passed; 0 failed; 1')}${line('FAILED', '2 passed; 3 failed; 0')}`), { passed: 7, failed: 3, skipped: 1 })
  assert.strictEqual(countCargoTest('error: could not compile'), null)
  const output = 'ok - one (0.1 s)\nskip - two # no network\n3 passed, 1 failed, 1 skipped\n'
  assert.deepStrictEqual(countScript(output), { passed: 3, failed: 1, skipped: 1, skips: [{ what: 'two', reason: 'no network' }] })
  assert.strictEqual(countScript('3 passed, 1 failed\nand more'), null)
})

/** By what it does, a step, what is counted of it (passed, failed, skipped), and the failure. */
const steps = {
  passes: [{ source: '' }, [1, 0, 0]],
  fails: [{ source: 'process.exitCode = 3' }, [0, 1, 0], 'the command: exit code 3'],
  counts: [{ source: 'console.log("2 passed, 0 failed")', count: countScript }, [2, 0, 0]],
  'does not say its counts': [{ source: '', count: countScript }, [0, 1, 0], 'the command: its output does not say how many tests there were'],
  'lacks its tool': [{ source: '', missing: () => 'no linter' }, [0, 0, 1]]
}

for (const [name, [{ source, ...rest }, counts, ...failures]] of Object.entries(steps)) {
  test(`a step that ${name}`, async () => {
    const report = new Report(() => {})
    const command = () => ({ command: process.execPath, args: ['-e', source] })
    assert.strictEqual(await runStep({ where: 'step', what: '', shown: 'the command', command, ...rest }, report), counts[1] === 0)
    const [{ passed, failed, skipped }] = report.rows
    assert.deepStrictEqual([[passed, failed, skipped], report.failures], [counts, failures])
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
    const again = fs.existsSync(__filename + '.seen')
    fs.writeFileSync(__filename + '.seen', '')
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
  assert.deepStrictEqual([ok, lines[lines.length - 1]], [false, '1 passed, 1 failed'])
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
