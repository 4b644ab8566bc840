'use strict'

// subjects: none
// oldest: none (there the host has no queue for promises, which memory.atomic.notify would reach)

// The limits of the package, as docs/guarantees.md lists them. A test that fails here is good news for users and a
// change to that page.

const assert = require('assert')
const vm = require('vm')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { logs, runForJSON } = require('../fixtures/run-node')
const wasm = require('../fixtures/wasm-threads')

// Before anything of the package is loaded.
const captured = { wait: Atomics.wait, notify: Atomics.notify || Atomics.wake, waitAsync: Atomics.waitAsync }

const own = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const WITHOUT_HOST = typeof captured.waitAsync !== 'function' && 'this Node has no Atomics.waitAsync of its own'

const newWords = () => new Int32Array(new SharedArrayBuffer(4 * 16))

/** Starts a program's worker, which ends with the test; `next()` is what it says next. */
function startWorker (t, source, workerData) {
  const worker = new Worker(source, { eval: true, workerData })
  t.after(() => worker.terminate())
  return () => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

const NO_THREADS = MAJOR < 14 && 'this Node has no WebAssembly threads'
const IN_HOST = !WITHOUT_HOST && 'waits on a WebAssembly memory are in the host\'s queue'
test('before Node 16, memory.atomic.notify does not reach the package\'s queue', { skip: IN_HOST || NO_THREADS }, t =>
  logs(t, [0, 1, 'timed-out'], 'index', ({ api, data, log, require }) => {
    const memory = require(data).newMemory()
    const words = new Int32Array(memory.buffer)
    Atomics.waitAsync(words, 1, 0, 50).value.then(outcome => { log.push(outcome) })
    log.push(require(data).instantiate(memory).notify(4, 1), api.waiterCount(words, 1))
  }, { flags: ['--experimental-wasm-threads'], data: wasm.file }))

test(
  'memory.atomic.notify does not reach waits on a buffer that was posted alone',
  { skip: wasm.missing || WITHOUT_HOST },
  async t => {
    const memory = wasm.newMemory()
    const words = new Int32Array(memory.buffer)
    const next = startWorker(
      t,
      `
    const { parentPort, workerData: { pure, words } } = require('worker_threads')
    const { value } = require(pure).waitAsync(words, 1, 0, 20000)
    parentPort.postMessage('waits')
    value.then(outcome => parentPort.postMessage(outcome))
  `,
      { pure: require.resolve('../../pure'), words }
    )
    assert.strictEqual(await next(), 'waits')
    assert.strictEqual(wasm.instantiate(memory).notify(4, 1), 0)
    assert.strictEqual(own.waiterCount(words, 1), 1)
    const outcome = next()
    assert.strictEqual(own.notify(words, 1), 1)
    assert.strictEqual(await outcome, 'ok')
  }
)

test('Atomics.notify of a thread without the package does not reach the package\'s own queue', async t => {
  const words = newWords()
  const { value } = own.waitAsync(words, 0, 0, 10000)
  const next = startWorker(t, `
    const { parentPort, workerData } = require('worker_threads')
    parentPort.postMessage((Atomics.notify || Atomics.wake)(workerData, 0, 1))
  `, words)
  assert.strictEqual(await next(), 0)
  assert.strictEqual(own.notify(words, 0), 1)
  assert.strictEqual(await value, 'ok')
})

test('a notify that was captured before the install does not reach the package\'s own queue', async () => {
  const words = newWords()
  const { value } = own.waitAsync(words, 0, 0, 10000)
  assert.strictEqual(captured.notify.call(Atomics, words, 0, 1), 0)
  assert.strictEqual(own.notify(words, 0), 1)
  assert.strictEqual(await value, 'ok')
})

/**
 * Returns the outcome of a Worker's plain wait for a lock's word. Main unlocks while it waits. The Worker does not have
 * the package.
 */
const waitInWorker = (t, timeout, program) => runForJSON(t, ['-e', `
  const { Worker } = require('worker_threads')
  const words = new Int32Array(new SharedArrayBuffer(8))
  const start = () => {
    const worker = new Worker(\`
      const { parentPort, workerData: words } = require('worker_threads')
      parentPort.on('message', () => {
        Atomics.store(words, 1, 1)
        parentPort.postMessage(Atomics.wait(words, 0, 1, ${timeout}))
        parentPort.close()
      })\`, { eval: true, workerData: words })
    worker.on('message', (outcome) => console.log(JSON.stringify(outcome)))
    return worker
  }
  ${program}
  const token = new api.AsyncLock(words.buffer).tryLock()
  worker.postMessage('begin')
  const unlock = () => words[1] === 1 ? setTimeout(() => token.unlock(), 200) : setTimeout(unlock, 1)
  unlock()`])

test('a lock released in a thread with an install wakes no plain waiter of an older Worker', async t => {
  const outcome = await waitInWorker(t, 1000, `
    const worker = start()
    const api = require(${JSON.stringify(require.resolve('../../force'))})`)
  // If it came late, it did not wait at all.
  assert.ok(outcome === 'timed-out' || outcome === 'not-equal', outcome)
})

test('but it does with workers: false', async t => {
  const outcome = await waitInWorker(t, 15000, `
    const api = require(${JSON.stringify(require.resolve('../../pure'))})
    api.install({ force: true, workers: false })
    const worker = start()`)
  assert.ok(outcome === 'ok' || outcome === 'not-equal', outcome)
})

test(
  'a waiter of a function that was captured before comes after the package\'s own queue',
  { skip: WITHOUT_HOST },
  async () => {
    const words = newWords()
    const first = captured.waitAsync.call(Atomics, words, 0, 0, 10000)
    const second = own.waitAsync(words, 0, 0, 10000)
    assert.strictEqual(own.notify(words, 0, 1), 1)
    assert.strictEqual(await second.value, 'ok')
    assert.strictEqual(own.waiterCount(words, 0), 0)
    assert.strictEqual(own.notify(words, 0, 1), 1)
    // The host's promise keeps nothing alive.
    const alive = setInterval(() => {}, 1000)
    assert.strictEqual(await first.value, 'ok')
    clearInterval(alive)
  }
)

test('a time limit of vm that ends a callback leaves the lock held; unlock() of its thread frees it', () => {
  const context = vm.createContext({ runs: false })
  // A slow machine may not come to the callback in time, and may have taken the lock for it.
  for (let timeout = 20; !context.runs; timeout *= 2) {
    context.lock = new own.AsyncLock(new SharedArrayBuffer(4))
    assert.throws(
      () => vm.runInContext('lock.executeLocked(() => { runs = true; for (;;); })', context, { timeout }),
      /timed out/
    )
  }
  const { lock } = context
  assert.strictEqual(lock.locked, true)
  lock.unlock()
  assert.strictEqual(lock.locked, false)
})

test('an earlier listener of a signal that is not Node\'s own can keep an abort from a wait', {
  skip: typeof EventTarget !== 'function' && 'this Node has no EventTarget'
}, async () => {
  const lock = new own.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const signal = Object.assign(new EventTarget(), { aborted: false })
  signal.addEventListener('abort', event => { event.stopImmediatePropagation() })
  const waiting = lock.lockAsync({ signal })
  signal.aborted = true
  signal.dispatchEvent(new Event('abort'))
  assert.strictEqual(lock.waiters, 1)
  token.unlock()
  ;(await waiting).unlock()
})

test('a debugger that waits at a Worker\'s start stops in the package\'s file first', {
  skip: MAJOR < 12 && 'this Node debugs no workers'
}, async t => {
  const [first, second] = await runForJSON(t, [require.resolve('../fixtures/debugger')])
  assert.strictEqual(first, 'start.js')
  if (MAJOR >= 22) assert.strictEqual(second, 'debugged-thread.js')
})
