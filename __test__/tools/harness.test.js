'use strict'

// What the harness reports of test files that fail in every way. Each is run as a child process.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { spawn } = require('child_process')
const { test } = require('../harness')
const slowness = require('../fixtures/slowness')

/** By what it shows, a file; how many tests it counts as passed, failed and skipped; and what its output has. */
const fixtures = {
  'passing, failing and skipped tests are counted': [`
    test('sync', () => {})
    test('async', async () => { await null })
    test('fails', () => { assert.strictEqual(1, 2) })
    test('rejects', async () => { throw new RangeError('from afar') })
    test('skipped', { skip: 'no reason to run' }, () => { throw new Error('ran') })
    test('skips itself', async t => { await null; t.skip('found out later'); throw new Error('ran') })
    test('still runs', () => {})`, [3, 2, 2],
  /^ok 1 - sync \(\d+ ms\)$/m, /^ok 2 - async /m, /^not ok 3 - fails\n {4}AssertionError/m, /^not ok 4 - rejects\n {4}RangeError: from afar/m,
  /^skip 5 - skipped # no reason to run$/m, /^skip 6 - skips itself # found out later$/m, /^ok 7 - still runs/m],
  'a file of passing tests ends with exit code 0': ["test('one', () => {})", [1, 0, 0], /^ok 1 - one/m],
  'tests run one after the other, in their order': [`
    const order = []
    test('first', async () => { await later(20); order.push(1) })
    test('second', () => { order.push(2) })
    test('third', () => { assert.deepStrictEqual(order, [1, 2]) })`, [3, 0, 0]],
  'a value that is no error fails a test too': [`
    test('throws undefined', () => { throw undefined })
    test('rejects with null', () => Promise.reject(null))`, [0, 2, 0],
  /^not ok 1 - throws undefined\n {4}undefined$/m, /^not ok 2 - rejects with null\n {4}null$/m],
  'a test that takes too long fails, and the next one runs': [`
    test('slow', { timeout: 20 }, t => {
      const timer = setInterval(() => {}, 1000)
      t.after(() => clearInterval(timer))
      return new Promise(() => {})
    })
    test('next', () => {})`, [1, 1, 0], /^not ok 1 - slow\n {4}timed out after 20 ms$/m, /^ok 2 - next/m],
  'a promise that never settles fails its test as soon as the event loop is dry, and the next ones run': [`
    test('first', () => new Promise(() => {}))
    test('second', () => new Promise(() => {}))
    test('third', () => later(1))`, [1, 2, 0],
  /^not ok 1 - first\n {4}never settled: the event loop ran dry$/m, /^not ok 2 - second\n {4}never settled/m, /^ok 3 - third/m],
  'an exception in a callback fails the test that runs': [`
    test('breaks', () => { setImmediate(() => { throw new Error('in a callback') }); return later(100) })
    test('next', () => {})`, [1, 1, 0], /^not ok 1 - breaks\n {4}uncaught exception: Error: in a callback/m, /^ok 2 - next/m],
  'an unhandled rejection fails the test that runs': [`
    test('forgets', () => { Promise.reject(new Error('forgotten')); return later(100) })
    test('next', () => {})`, [1, 1, 0], /^not ok 1 - forgets\n {4}unhandled rejection: Error: forgotten/m, /^ok 2 - next/m],
  'a file that throws while it is loaded has failed': ["test('registered', () => {}); throw new Error('half a file')", [1, 1, 0],
    /^not ok 1 - \(outside of a test\)\n {4}uncaught exception: Error: half a file/m, /^ok 2 - registered/m],
  'process.exit(0) within a test is a failure of it, and of those that it kept from running': [`
    test('leaves', async () => { await null; process.exit(0) })
    test('next', () => {})`, [0, 2, 0],
  /^not ok 1 - leaves\n {4}the process ended during this test \(exit code 0\)$/m, /^not ok 2 - next\n {4}not run/m],
  'an exit code set by a passing test is a failure': ["test('sets it', () => { process.exitCode = 3 })", [1, 1, 0],
    /^not ok 2 - \(exit code\)\n {4}the process ended with exit code 3$/m],
  'a file without a test has failed': ['', [0, 1, 0], /^not ok 1 - \(empty\)/m],
  'a file that something keeps alive after its failing test is ended': [
    "test('fails', () => { setInterval(() => {}, 1000); throw new Error('with a handle') })", [0, 2, 0],
    /^not ok 1 - fails\n {4}Error: with a handle/m, /^not ok 2 - the file ends by itself/m],
  'a file that something keeps alive after its passing tests has failed': ["test('passes', () => { setInterval(() => {}, 1000) })", [1, 1, 0],
    /^ok 1 - passes/m, /^not ok 2 - the file ends by itself\n {4}its tests are over, but something keeps it alive: \S/m],
  'an exception after the last test is reported once, even if ending the process brings it back': [`
    test('passes', () => {})
    process.on('beforeExit', () => { throw new Error('again') })`, [1, 1, 0],
  /^ok 1 - passes/m, /^not ok 2 - \(outside of a test\)\n {4}uncaught exception: Error: again/m],
  'clean-up runs last in, first out, also after a failure; its own failure fails the test': [`
    const order = []
    test('fails', t => {
      t.after(() => { order.push('outer') })
      t.after(async () => { await later(1); order.push('inner') })
      throw new Error('the test')
    })
    test('was cleaned up', () => { assert.deepStrictEqual(order, ['inner', 'outer']) })
    test('cleans up badly', t => { t.after(() => { throw new Error('the clean-up') }) })
    test('never cleans up', t => { t.after(() => new Promise(() => {})) })`, [1, 3, 0],
  /^not ok 1 - fails\n {4}Error: the test/m, /^ok 2 - was cleaned up/m, /^not ok 3 - cleans up badly\n {4}Error: the clean-up/m,
  /^not ok 4 - never cleans up\n {4}its clean-up: never settled/m],
  'much output arrives in full before the last line': [
    "test('talks', () => { for (let i = 0; i < 20000; i++) console.log('line', i) })", [1, 0, 0], /^line 0\n/, /\nline 19999\nok 1 - talks/]
}

const prelude = `'use strict'
const assert = require('assert')
const { test } = require(${JSON.stringify(require.resolve('../harness'))})
const later = ms => new Promise(resolve => setTimeout(resolve, ms))
`

for (const name of Object.keys(fixtures)) {
  const [source, [passed, failed, skipped], ...says] = fixtures[name]
  test(name, async t => {
    const { code, signal, stdout } = await runFixture(t, prelude + source)
    const output = stdout.length > 4000 ? `${stdout.slice(0, 2000)}\n...\n${stdout.slice(-2000)}` : stdout
    assert.strictEqual(signal, null, output)
    assert.strictEqual(stdout.trim().split('\n').pop(), `# ${JSON.stringify({ passed, failed, skipped })}`, output)
    for (const pattern of says) assert.ok(pattern.test(stdout), `${pattern} is not in the output:\n${output}`)
    assert.strictEqual(code, failed > 0 ? 1 : 0, output)
  })
}

async function runFixture (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-harness-'))
  const file = path.join(folder, 'fixture.js')
  t.after(() => {
    fs.unlinkSync(file)
    fs.rmdirSync(folder)
  })
  fs.writeFileSync(file, source)
  const child = spawn(process.execPath, process.execArgv.concat(file), {
    // The fixtures' own limits are meant as they are written.
    env: Object.assign({}, process.env, { HARNESS_LINGER: String(slowness * 500), TEST_SLOWNESS: '' }),
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.after(() => { child.kill('SIGKILL') })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', text => { stdout += text })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout }))
  })
}
