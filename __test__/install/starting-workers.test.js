'use strict'

// A Worker that an install reaches may notify: from construction to end.
// oldest: none (there the plain entry installs)

const assert = require('assert')
const { test } = require('../harness')
const programsBy = require('../fixtures/printed-value')
const { runNode } = require('../fixtures/run-node')
const slowness = require('../fixtures/slowness')

const MAJOR = Number(process.versions.node.split('.')[0])
/** Writes an entry's path without a backslash: a string within a string would lose it. */
const entry = (name) => JSON.stringify(require.resolve(`../../${name}`).replace(/\\/g, '/'))

/**
 * Returns the output of a program that ends well, in lines. Its main thread has `api`, `array` on shared memory,
 * `Worker`, and `start(source)`.
 */
async function linesOf (t, program, { name = 'force', flags = [] } = {}) {
  const source = `
    const earlier = require('worker_threads').Worker
    const api = require(${entry(name)})
    const { Worker } = require('worker_threads')
    const array = new Int32Array(new SharedArrayBuffer(16))
    const started = Date.now()
    const say = text => require('fs').writeSync(1, text + '\\n')
    const options = (source, more) => Object.assign({ eval: true, workerData: array }, more)
    const start = (source, more) => {
      const worker = new Worker('const array = require("worker_threads").workerData;' + source, options(source, more))
      worker.unref()
      return worker
    }
    const wait = () => { Atomics.waitAsync(array, 0, 0).value.then(say) }
    process.on('exit', () => say('end ' + (Date.now() - started < ${slowness * 15000} ? 'in time' : 'late')))
    ${program}`
  const { code, signal, stdout, stderr } = await runNode(t, flags.concat('-e', source))
  assert.strictEqual(signal, null, stderr)
  assert.strictEqual(code, 0, stderr)
  return stdout.trim().split('\n')
}

const program = programsBy(linesOf)

const NOTIFIES = "'setTimeout(() => Atomics.notify(array, 0), 100)'"
const SETTLES = ['ok', 'end in time']
const ENDS = ['end in time']

program('a wait begun right after the Worker is settled by it, although nothing else keeps main alive')(`
start(${NOTIFIES}); wait()`).gives(SETTLES)

program('a wait begun right before the Worker is settled by it, too')(`
wait(); start(${NOTIFIES})`).gives(SETTLES)

test('a Worker settles a wait in whichever way the install reaches it', async t => {
  const worker = 'const array = require("worker_threads").workerData; '
  // A Worker of a reference that is older than the install is reached by message; with NODE_OPTIONS changed since, all
  // are.
  assert.deepStrictEqual(await linesOf(t, `
    new earlier('${worker}' + ${NOTIFIES}, options()).unref()
    wait()`), SETTLES)
  assert.deepStrictEqual(await linesOf(t, `
    process.env.NODE_OPTIONS = '--no-deprecation'
    start(${NOTIFIES})
    wait()`), SETTLES)
  assert.deepStrictEqual(await linesOf(t, `
    class Mine extends Worker {}
    new Mine('${worker}' + ${NOTIFIES}, options()).unref()
    wait()`), SETTLES)
})

program('a Worker with its own execArgv settles a wait, too', MAJOR < 12 && 'Workers have no execArgv here')(`
start(${NOTIFIES}, { execArgv: [] }); wait()`).gives(SETTLES)

test(
  'a Worker settles a wait of the plain entry, where that installs',
  { skip: MAJOR >= 16 && 'it installs nothing here' },
  async t => {
    assert.deepStrictEqual(await linesOf(t, `start(${NOTIFIES}); wait()`, { name: 'index' }), SETTLES)
  }
)

test(
  'main may load the native library after it has started the Worker',
  { skip: MAJOR < 16 && 'main has it at once here' },
  async t => {
    assert.deepStrictEqual(
      await linesOf(
        t,
        `
    start('setTimeout(() => new (require(${entry('keep-alive')}).Semaphore)(array.buffer).release(), 100)')
    new api.Semaphore(array.buffer).acquireAsync().then(() => say('ok'))`,
        { name: 'keep-alive' }
      ),
      SETTLES
    )
  }
)

program('a Worker that is started by a Worker counts, too')(`
  const inner = 'const array = require("worker_threads").workerData;' + ${NOTIFIES}
  start('const { Worker } = require("worker_threads");' +
    'new Worker(' + JSON.stringify(inner) + ', { eval: true, workerData: array }).unref();' +
    'Atomics.waitAsync(array, 0, 0)')
  wait()`).gives(SETTLES)

// ——— and no longer than that ———

test('a forgotten wait lets the program end when the Worker has ended', async t => {
  assert.deepStrictEqual(await linesOf(t, "start('setTimeout(() => {}, 100)'); wait()"), ENDS)
})

test('a Worker that is terminated at once does not keep a forgotten wait pending', async t => {
  assert.deepStrictEqual(await linesOf(t, "start('setInterval(() => {}, 1000)').terminate(); wait()"), ENDS)
})

test('a Worker whose preload fails, or whose code does not compile, keeps no forgotten wait pending', async t => {
  const failing = more => `
    const source = 'setInterval(() => {}, 1000)' + ${JSON.stringify(more.syntax)}
    const worker = start(source, ${JSON.stringify(more.options)})
    worker.on('error', () => say('failed'))
    wait()`
  const lines = ['failed', 'end in time']
  assert.deepStrictEqual(await linesOf(t, failing({ syntax: '}', options: {} })), lines)
  if (MAJOR >= 12)
    assert.deepStrictEqual(
      await linesOf(t, failing({ syntax: '', options: { execArgv: ['-r', '/there/is/no/such/file.js'] } })),
      lines
    )
})

program('a Worker whose constructor throws does not keep a forgotten wait pending')(`
  for (const options of [{ eval: true, workerData: () => {} }, { eval: true, env: 1 }]) {
    try {
      new Worker('', options)
      say('started')
    } catch (error) {
      say('thrown')
    }
  }
  wait()`).gives(MAJOR < 12 ? ['thrown', 'started', 'end in time'] : ['thrown', 'thrown', 'end in time'])

program('a Worker whose listeners are all removed does not keep a forgotten wait pending')(`
  const worker = start('setTimeout(() => {}, 100)')
  say(worker.listenerCount('exit'))
  worker.removeAllListeners()
  wait()`).gives(['0', 'end in time'])

program('the Workers of a thread that ends do not keep a forgotten wait pending')(`
  const inner = 'while (true);'
  // It ends while its own Worker has not come to load anything.
  start('const { Worker } = require("worker_threads");' +
    'new Worker(' + JSON.stringify(inner) + ', { eval: true }); process.exit()')
  wait()`).gives(ENDS)

program('a Worker that is started after an uninstall does not keep a forgotten wait pending')(`
  const { waitAsync } = Atomics
  api.uninstall()
  // Node 10 dies now and then of the end of main while a Worker boots, with this package or without.
  start('Atomics.store(array, 1, 1); setTimeout(() => {}, 20000)')
  while (Atomics.load(array, 1) === 0);
  waitAsync(array, 0, 0).value.then(say)`).gives(ENDS)
