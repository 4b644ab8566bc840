'use strict'

// The harness's reports on test files that fail in every way. Each is run as a child process.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const { runNode } = require('../fixtures/run-node')
const slowness = require('../fixtures/slowness')

/** By what it shows: a file, and behind `// → ` what is reported of each test, with the first line of the reason. */
const files = {
  'passing, failing and skipped tests, one after the other': `
    test('async', () => later(20)) // → ok async
    test('sync', () => {}) // → ok sync
    test('fails', () => { throw new Error('here') }) // → not ok fails: Error: here
    test('rejects', async () => { throw new RangeError('afar') }) // → not ok rejects: RangeError: afar
    test('throws undefined', () => { throw undefined }) // → not ok throws undefined: undefined
    // → skip skipped # no reason to run
    test('skipped', { skip: 'no reason to run' }, () => { throw new Error('ran') })
    // → skip skips itself # found out later
    test('skips itself', async t => { await null; t.skip('found out later'); throw new Error('ran') })`,
  'a test that takes too long fails, and the next one runs': `
    test('slow', { timeout: 20 }, t => { // → not ok slow: timed out after 20 ms
      const timer = setInterval(() => {}, 1000)
      t.after(() => clearInterval(timer))
      return new Promise(() => {})
    })
    test('next', () => {}) // → ok next`,
  'a promise that never settles fails its test as soon as the event loop is dry, and the next ones run': `
    test('first', () => new Promise(() => {})) // → not ok first: never settled: the event loop ran dry
    test('second', () => new Promise(() => {})) // → not ok second: never settled: the event loop ran dry
    test('third', () => later(1)) // → ok third`,
  'an exception in a callback, or an unhandled rejection, fails the test that runs': `
    // → not ok breaks: uncaught exception: Error: late
    test('breaks', () => { setImmediate(() => { throw new Error('late') }); return later(100) })
    // → not ok forgets: unhandled rejection: Error: forgotten
    test('forgets', () => { Promise.reject(new Error('forgotten')); return later(100) })
    test('next', () => {}) // → ok next`,
  'a file that throws while it is loaded': `
    // → not ok (outside of a test): uncaught exception: Error: half a file
    test('registered', () => {}) // → ok registered
    throw new Error('half a file')`,
  'process.exit(0) within a test is a failure of it, and of those that it kept from running': `
    // → not ok leaves: the process ended during this test (exit code 0)
    test('leaves', () => { process.exit(0) })
    test('next', () => {}) // → not ok next: not run: the process ended before it`,
  'an exit code set by a passing test': `
    test('sets it', () => { process.exitCode = 3 }) // → ok sets it
    // → not ok (exit code): the process ended with exit code 3`,
  'an exception after the last test, which ending the process brings back': `
    test('passes', () => {}) // → ok passes
    // → not ok (outside of a test): uncaught exception: Error: again
    process.on('beforeExit', () => { throw new Error('again') })`,
  'a file without a test': '// → not ok (empty): the file has no test',
  'a file that something keeps alive after its tests': `
    test('passes', () => { setInterval(() => {}, 1000) }) // → ok passes
    // → not ok the file ends by itself: its tests are over, but something keeps it alive`,
  'clean-up runs last in, first out, also after a failure; its own failure fails the test': `
    const order = []
    test('fails', t => { // → not ok fails: Error: the test
      t.after(() => { order.push('outer') })
      t.after(async () => { await later(1); order.push('inner') })
      throw new Error('the test')
    })
    // → ok was cleaned up
    test('was cleaned up', () => { if (order.join() !== 'inner,outer') throw new Error(order) })
    // → not ok cleans up badly: Error: the clean-up
    test('cleans up badly', t => { t.after(() => { throw new Error('the clean-up') }) })
    // → not ok never cleans up: its clean-up: never settled: the event loop ran dry
    test('never cleans up', t => { t.after(() => new Promise(() => {})) })`
}

const prelude = `'use strict'
const { test } = require(${JSON.stringify(require.resolve('../harness'))})
const later = ms => new Promise(resolve => setTimeout(resolve, ms))
`
/** The parts that differ from run to run: numbers, times, and handles. */
const BY_CHANCE = /(?<=^[a-z ]+ )\d+ - | \(\d+ ms\)$|(?<=alive): .*/g

for (const name of Object.keys(files)) {
  test(name, async t => {
    const file = path.join(scratchFolder(t), 'fixture.js')
    fs.writeFileSync(file, prelude + files[name])
    const reports = files[name].match(/\/\/ → .*/g).map(comment => comment.slice(5))
    // The fixtures' own limits are meant as they are written.
    const env = { HARNESS_LINGER: String(slowness * 500), TEST_SLOWNESS: '' }
    const { code, signal, stdout } = await runNode(t, [file], { env })
    const told = stdout.match(/^(?:ok|not ok|skip) .*(?:\n {4}.*)?/gm).map(report => report.replace('\n    ', ': '))
    assert.deepStrictEqual(told.map(report => report.replace(BY_CHANCE, '')), reports, stdout)
    const count = kind => reports.filter(report => report.startsWith(kind)).length
    const closing = `# ${JSON.stringify({ passed: count('ok'), failed: count('not ok'), skipped: count('skip') })}`
    assert.strictEqual(stdout.trim().split('\n').pop(), closing)
    assert.deepStrictEqual([code, signal], [count('not ok') > 0 ? 1 : 0, null])
  })
}
