'use strict'

// What the harness reports of test files that fail in every way. Each is run as a child process.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { runNode } = require('../fixtures/run-node')
const slowness = require('../fixtures/slowness')

const DRY = 'never settled: the event loop ran dry'
/** By what it shows: a file, and what is reported of each test, with the first line of the reason. */
const files = {
  'passing, failing and skipped tests': [`
    test('sync', () => {})
    test('async', () => later(1))
    test('fails', () => { throw new Error('here') })
    test('rejects', async () => { throw new RangeError('from afar') })
    test('throws undefined', () => { throw undefined })
    test('skipped', { skip: 'no reason to run' }, () => { throw new Error('ran') })
    test('skips itself', async t => { await null; t.skip('found out later'); throw new Error('ran') })`,
  'ok sync', 'ok async', 'not ok fails: Error: here', 'not ok rejects: RangeError: from afar',
  'not ok throws undefined: undefined', 'skip skipped # no reason to run', 'skip skips itself # found out later'],
  'tests run one after the other, in their order': [`
    const order = []
    test('first', async () => { await later(20); order.push(1) })
    test('second', () => { order.push(2) })
    test('third', () => { if (order.join() !== '1,2') throw new Error(order) })`,
  'ok first', 'ok second', 'ok third'],
  'a test that takes too long fails, and the next one runs': [`
    test('slow', { timeout: 20 }, t => {
      const timer = setInterval(() => {}, 1000)
      t.after(() => clearInterval(timer))
      return new Promise(() => {})
    })
    test('next', () => {})`,
  'not ok slow: timed out after 20 ms', 'ok next'],
  'a promise that never settles fails its test as soon as the event loop is dry, and the next ones run': [`
    test('first', () => new Promise(() => {}))
    test('second', () => new Promise(() => {}))
    test('third', () => later(1))`,
  `not ok first: ${DRY}`, `not ok second: ${DRY}`, 'ok third'],
  'an exception in a callback, or an unhandled rejection, fails the test that runs': [`
    test('breaks', () => { setImmediate(() => { throw new Error('late') }); return later(100) })
    test('forgets', () => { Promise.reject(new Error('forgotten')); return later(100) })
    test('next', () => {})`,
  'not ok breaks: uncaught exception: Error: late', 'not ok forgets: unhandled rejection: Error: forgotten', 'ok next'],
  'a file that throws while it is loaded': [`
    test('registered', () => {})
    throw new Error('half a file')`,
  'not ok (outside of a test): uncaught exception: Error: half a file', 'ok registered'],
  'process.exit(0) within a test is a failure of it, and of those that it kept from running': [`
    test('leaves', () => { process.exit(0) })
    test('next', () => {})`,
  'not ok leaves: the process ended during this test (exit code 0)',
  'not ok next: not run: the process ended before it'],
  'an exit code set by a passing test': [
    "test('sets it', () => { process.exitCode = 3 })",
    'ok sets it', 'not ok (exit code): the process ended with exit code 3'],
  'a file without a test': ['', 'not ok (empty): the file has no test'],
  'a file that something keeps alive after its tests': [
    "test('passes', () => { setInterval(() => {}, 1000) })",
    'ok passes', 'not ok the file ends by itself: its tests are over, but something keeps it alive: …'],
  'an exception after the last test, which ending the process brings back': [`
    test('passes', () => {})
    process.on('beforeExit', () => { throw new Error('again') })`,
  'ok passes', 'not ok (outside of a test): uncaught exception: Error: again'],
  'clean-up runs last in, first out, also after a failure; its own failure fails the test': [`
    const order = []
    test('fails', t => {
      t.after(() => { order.push('outer') })
      t.after(async () => { await later(1); order.push('inner') })
      throw new Error('the test')
    })
    test('was cleaned up', () => { if (order.join() !== 'inner,outer') throw new Error(order) })
    test('cleans up badly', t => { t.after(() => { throw new Error('the clean-up') }) })
    test('never cleans up', t => { t.after(() => new Promise(() => {})) })`,
  'not ok fails: Error: the test', 'ok was cleaned up', 'not ok cleans up badly: Error: the clean-up',
  `not ok never cleans up: its clean-up: ${DRY}`],
  'much output arrives in full before the last line': [`
    test('talks', () => { for (let n = 0; n < 20000; n++) console.log(n) })
    test('counted', () => {})`,
  'ok talks', 'ok counted']
}

const prelude = `'use strict'
const { test } = require(${JSON.stringify(require.resolve('../harness'))})
const later = ms => new Promise(resolve => setTimeout(resolve, ms))
`

for (const name of Object.keys(files)) {
  const [source, ...reports] = files[name]
  test(name, async t => {
    const file = path.join(os.tmpdir(), `atomics-waitasync-harness-${process.pid}.js`)
    fs.writeFileSync(file, prelude + source)
    t.after(() => fs.unlinkSync(file))
    // The fixtures' own limits are meant as they are written.
    const env = { HARNESS_LINGER: String(slowness * 500), TEST_SLOWNESS: '' }
    const { code, signal, stdout } = await runNode(t, [file], { env })
    const told = Array.from(stdout.match(/^(?:ok|not ok|skip) .*(?:\n {4}.*)?/gm), text =>
      text
        .replace(/^([a-z ]+) \d+ - /, '$1 ')
        .replace(/ \(\d+ ms\)$/, '')
        .replace('\n    ', ': ')
        .replace(/alive: \S.*/, 'alive: …')
    )
    assert.deepStrictEqual([signal, told], [null, reports], stdout.slice(-4000))
    const count = (kind) => reports.filter(report => report.startsWith(kind)).length
    const [passed, failed, skipped] = ['ok', 'not ok', 'skip'].map(count)
    const lines = stdout.trim().split('\n')
    assert.strictEqual(lines[lines.length - 1], `# ${JSON.stringify({ passed, failed, skipped })}`)
    assert.strictEqual(code, failed > 0 ? 1 : 0)
    if (/output/.test(name)) assert.strictEqual(lines.filter(line => /^\d+$/.test(line)).length, 20000)
  })
}
