'use strict'
// nodes: running (the runner itself does)

// How `npm test` judges failing test files, and chooses its Nodes.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const slowness = require('../fixtures/slowness')
const { runSuites } = require('../../scripts/lib/node-suites')
const { Report } = require('../../scripts/lib/report')
const { countScript, plannedSteps, runStep } = require('../../scripts/lib/steps')
const { nodesOfTheDay } = require('../../scripts/lib/test-arguments')
const testFile = require('../../scripts/lib/test-file')

const node = { path: process.execPath, flags: [] }
const closing = (passed, failed) => `console.log('# ${JSON.stringify({ passed, failed, skipped: 0 })}');`

/** Writes a test file of this source: in a folder of its own. */
function declare (t, source) {
  const file = path.join(scratchFolder(t), 'fixture.test.js')
  fs.writeFileSync(file, source)
  return testFile.read(file)
}

const child = `require('child_process')
  .spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).unref();`
const eat = 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 22, 1))'
const eatElsewhere = `require('child_process').spawnSync(process.execPath, ['-e', '${eat}'])`
const flood = 'for (;;) require("fs").writeSync(1, Buffer.alloc(65536, 255))'
const crash = "process.kill(process.pid, 'SIGKILL')"

const ended = (code, what) => `ended with exit code ${code}${what}`
const [WITHOUT, AFTER] = [', but without its closing line', ' after its closing line']
const late = seconds => `was killed: not over after ${slowness * seconds} s`
const [CRASH, TOO_MUCH] = ['crashed with SIGKILL', 'was killed: it took too much memory']
const skips = {
  [CRASH]: process.platform === 'win32' && 'it has no signals',
  [TOO_MUCH]: process.platform !== 'linux' && 'needs /proc'
}
/** A file's kind, its source, its counts of passed and failed tests, and its error. */
const runs = [
  ['a file that passes', closing(2, 0), 2, 0, null],
  ['a file with failures', `${closing(2, 3)} process.exitCode = 1`, 2, 3, '3 failed'],
  ['a crash after the closing line', closing(1, 0) + crash, 1, 1, CRASH],
  ['a crash before the closing line', crash, 0, 1, CRASH],
  ['a hang', '// timeout: 1\nsetInterval(() => {}, 1000)', 0, 1, late(1)],
  ['a hang after the closing line', `// timeout: 3\n${closing(1, 0)} for (;;);`, 1, 1, late(3)],
  ['output without end', `// timeout: 2\n${flood}`, 0, 1, late(2)],
  ['no closing line', "console.log('ok 1 - fine')", 0, 1, ended(0, WITHOUT)],
  ['more after the closing line', `${closing(1, 0)} console.log(1); process.exitCode = 1`, 0, 1, ended(1, WITHOUT)],
  ['an exit code that contradicts the closing line', `${closing(1, 0)} process.exitCode = 7`, 1, 1, ended(7, AFTER)],
  ['failures with exit code 0', closing(1, 1), 1, 2, ended(0, AFTER)],
  ['no test', closing(0, 0), 0, 1, 'ran no test'],
  ['a process that is left behind', child + closing(1, 0), 1, 1, 'left a process behind that held its output open'],
  ['a file that takes more memory than it may', eat, 0, 1, TOO_MUCH],
  ['a file whose process takes more memory than it may', eatElsewhere, 0, 1, TOO_MUCH]
]

for (const [name, source, passed, failed, problem] of runs) {
  test(`${name}: ${failed} failed`, { skip: skips[problem] }, async t => {
    const options = problem === TOO_MUCH ? { memory: 2 ** 28 } : {}
    const result = await testFile.run(declare(t, source), node, null, options)
    assert.deepStrictEqual([result.passed, result.failed, result.problem], [passed, failed, problem])
    assert.ok(result.output.length < 4 * 1024 * 1024, `${result.output.length} characters were kept`)
  })
}

test('every Node comes soon, whether there is a run every day, every week, or every other one', () => {
  for (const every of [1, 2, 7, 14]) {
    for (let length = 6; length <= 12; length++) {
      const versions = Array.from({ length }, (_, n) => `${n}.0.0`)
      const days = Array.from({ length: 2 * length }, (_, n) => 20000 + every * n)
      const runs = days.map(day => nodesOfTheDay(versions, { running: '1.0.0', day }))
      assert.ok(runs.every(([one, other]) => one !== other))
      const others = versions.filter((_, n) => n > 1 && n < length - 1)
      assert.deepStrictEqual([...new Set(runs.flat())].sort(), others.sort(), `${length} versions, every ${every} days`)
    }
  }
})

test('of a run on several Nodes the oldest and the newest have all files that they admit, each what may differ', () => {
  const all = testFile.names().map(testFile.named)
  const versions = ['10.24.1', '12.22.12', '16.20.2', '24.22.3', '26.12.1']
  const runs = versions.map(version => testFile.onEach(all, version, versions).map(({ name }) => name))
  const on = name => versions.filter((_, n) => runs[n].includes(name))
  assert.deepStrictEqual(on('atomics/wait.test.js'), versions)
  assert.deepStrictEqual(on('ends/termination.test.js'), versions)
  assert.deepStrictEqual(on('ends/queue-deaths.test.js'), ['10.24.1', '26.12.1'])
  assert.deepStrictEqual(on('locks/semaphore.test.js'), ['10.24.1', '26.12.1'])
  assert.deepStrictEqual(on('processes/files.test.js'), ['16.20.2', '26.12.1'])
  const admitted = all.filter(({ nodes }) => versions.some(version => testFile.admits(nodes, version)))
  assert.deepStrictEqual([...new Set(runs.flat())].sort(), admitted.map(({ name }) => name).sort())
  const unused = Object.keys(testFile.DIFFERENT).filter(begin => !all.some(({ name }) => name.startsWith(begin)))
  assert.deepStrictEqual(unused, [])
})

test('a script whose output does not say its counts in its last line is a failure', async () => {
  assert.strictEqual(countScript('3 passed, 1 failed\nand more'), null)
  const report = new Report(() => {})
  const command = () => ({ command: process.execPath, args: ['-e', ''] })
  const step = { where: 'step', what: '', shown: 'it', command, count: countScript }
  assert.strictEqual(await runStep(step, report), false)
  assert.deepStrictEqual(report.failures, ['it: its output does not say how many tests there were'])
})

/** Runs a file of this source as a suite on this Node; gives whether all is well, and the lines that were printed. */
async function suiteOf (t, source) {
  const lines = []
  const report = new Report(text => { lines.push(...text.split('\n')) })
  const file = declare(t, `// subjects: none\n${source}`)
  await runSuites([{ version: 'current', files: [file], subjects: [null], size: 'small' }], { jobs: 1, report })
  return { ok: report.close(), lines }
}

test('a test that passes only when it is run again is listed by name right before the closing line', async t => {
  const { ok, lines } = await suiteOf(t, `
    const fs = require('fs')
    const again = fs.existsSync(__filename + '.seen')
    fs.writeFileSync(__filename + '.seen', '')
    console.log(again ? 'ok 1 - it holds (1 ms)' : 'not ok 1 - it holds')
    if (again) ${closing(1, 0)} else ${closing(0, 1)}
    process.exitCode = again ? 0 : 1`)
  const listed = `  it holds (fixture.test.js on Node ${process.versions.node})`
  const end = ['passed only when they were run again, alone:', listed, '', '1 passed, 0 failed']
  assert.deepStrictEqual([ok, lines.slice(-4)], [true, end])
})

for (const code of [0, 1]) {
  const what = code === 0 ? 'run when it is built' : 'do not run if it cannot be built'
  test(`files and steps that need the library ${what}`, async t => {
    const seen = path.join(scratchFolder(t), 'seen')
    fs.writeFileSync(seen, '')
    const note = name => `fs.appendFileSync(${JSON.stringify(seen)}, '${name} ')`
    // The build ends once the step that does not need it has ended: so that is not waited for.
    const build = `const timer = setInterval(() => {
      if (!/early/.test(fs.readFileSync(${JSON.stringify(seen)}, 'utf8'))) return
      clearInterval(timer)
      ${note('built')}
      process.exitCode = ${code}
    }, 5)`
    const step = (where, source) =>
      ({ where, what: '', shown: where, command: () => ({ command: process.execPath, args: ['-e', source] }) })
    const lane = [step('early', note('early')), { ...step('late', note('late')), needsLibrary: true }]
    const file = declare(t, `// subjects: none\nconst fs = require('fs')\n${note('file')}\n${closing(1, 0)}`)
    const report = new Report(() => {})
    const suites = [{ version: 'current', files: [file], subjects: [null], size: 'small' }]
    await runSuites(suites, { build: step('build', build), lanes: [lane], jobs: 2, report })
    assert.strictEqual(report.close(), code === 0)
    const names = fs.readFileSync(seen, 'utf8').trim().split(' ')
    assert.deepStrictEqual(names.slice(0, 2), ['early', 'built'])
    assert.deepStrictEqual(names.slice(2).sort(), code === 0 ? ['file', 'late'] : [])
  })
}

test('in a fresh clone only the linter of JavaScript runs before the library is built', () => {
  const { build, lanes } = plannedSteps({ all: true, ci: false, only: null, rust: true, setup: true, size: null })
  assert.strictEqual(build.where, 'build')
  assert.ok(lanes.flat().some(({ where }) => where === 'runtimes'))
  assert.deepStrictEqual(lanes.flat().filter(step => !step.needsLibrary).map(({ where }) => where), ['lint'])
})

test('files that may take longest come first, so that none is left alone at the end', async t => {
  const lines = []
  const declared = (seconds, more = '') =>
    declare(t, `// subjects: none\n// timeout: ${seconds}\n${more}\n${closing(1, 0)}`)
  const files = [declared(100), declared(300), declared(200, '// long: it is')]
  const report = new Report(() => {})
  const run = report.part.bind(report)
  report.part = (name, ...others) => {
    lines.push(name)
    return run(name, ...others)
  }
  const named = files.map((file, n) => ({ ...file, name: `file ${n}` }))
  await runSuites([{ version: 'current', files: named, subjects: [null], size: 'full' }], { jobs: 1, report })
  report.close()
  assert.deepStrictEqual(lines.map(line => line.slice(0, 6)), ['file 2', 'file 1', 'file 0'])
})

test('a file that fails twice has failed, and is told with a command; a run of nothing is no success', async t => {
  const { ok, lines } = await suiteOf(t, `${closing(1, 1)} process.exitCode = 1`)
  assert.deepStrictEqual([ok, lines[lines.length - 1]], [false, '1 passed, 1 failed'])
  const again = `npm test -- --no-rust --node ${process.versions.node} --subject none --only fixture.test.js`
  assert.ok(lines.includes(`       again: ${again}`), lines.join('\n'))
  const none = await suiteOf(t, '// nodes: <10 (it is old)\n')
  assert.deepStrictEqual([none.ok, none.lines.slice(-3)], [false, ['no test ran', '', '0 passed, 0 failed, 1 skipped']])
})
