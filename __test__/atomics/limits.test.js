'use strict'

// subjects: none
// oldest: none (there the host has no queue for promises, which memory.atomic.notify would reach)

// The limits of the package, as docs/guarantees.md lists them. A test that fails here is good news for users and a change to that page.

const assert = require('assert')
const { spawnSync } = require('child_process')
const vm = require('vm')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')

// Before anything of the package is loaded.
const captured = { wait: Atomics.wait, notify: Atomics.notify || Atomics.wake, waitAsync: Atomics.waitAsync }

const own = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const WITHOUT_HOST = typeof captured.waitAsync !== 'function' && 'this Node has no Atomics.waitAsync of its own'

const newWords = () => new Int32Array(new SharedArrayBuffer(4 * 16))

// (func (export "notify") (param $address i32) (param $count i32) (result i32) ... memory.atomic.notify), memory imported.
const MODULE = Buffer.from('0061736d010000000107016002' + '7f7f017f' + '02090' + '1016d016d02030101' + '03020100' +
  '070a01066e6f746966790000' + '0a0c010a0020002001fe0002000b', 'hex')

/** `memory.atomic.notify` on a shared memory of one page, or the reason why there is none on this Node. */
function wasm () {
  if (typeof WebAssembly !== 'object') return { missing: 'this Node has no WebAssembly' }
  try {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
    if (!(memory.buffer instanceof SharedArrayBuffer)) return { missing: 'this Node has no shared WebAssembly memory' }
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { m: { m: memory } })
    return { words: new Int32Array(memory.buffer), notify: exports.notify }
  } catch (error) {
    return { missing: `this Node has no WebAssembly threads: ${error.message}` }
  }
}

const { missing: WITHOUT_WASM } = wasm()

test('notify of another thread does not wake a promise past its deadline', async t => {
  const words = newWords()
  const worker = new Worker(`
    const { workerData: { pure, words } } = require('worker_threads')
    const { notify } = require(pure)
    words[1] = 1
    while (Atomics.load(words, 1) === 1);
    words[2] = notify(words, 0)
    Atomics.store(words, 1, 3)
  `, { eval: true, workerData: { pure: require.resolve('../../pure'), words } })
  t.after(() => worker.terminate())
  while (Atomics.load(words, 1) === 0) await new Promise(resolve => setTimeout(resolve, 1))
  const { value } = own.waitAsync(words, 0, 0, 5)
  const start = Date.now()
  while (Date.now() - start < 10);
  Atomics.store(words, 1, 2)
  while (Atomics.load(words, 1) === 2);
  assert.strictEqual(words[2], 0)
  assert.strictEqual(await value, 'timed-out')
})

/** Runs a program in which `wasm` is defined, `api` are the exports of an entry, and `words` is a WebAssembly memory; gives how it ended. */
function runWithWasm (entry, source, flags = []) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', `
    ${wasm}
    const MODULE = Buffer.from('${MODULE.toString('hex')}', 'hex')
    const api = require(${JSON.stringify(require.resolve(`../../${entry}`))})
    const { words, notify } = wasm()
    ${source}
  `], { encoding: 'utf8' })
  return [status, stdout, stderr]
}

test('before Node 16, memory.atomic.notify of WebAssembly does not reach the package\'s own queue', {
  skip: (!WITHOUT_HOST && 'waits on a WebAssembly memory are in the host\'s queue') || (MAJOR < 14 && 'this Node has no WebAssembly threads')
}, () => {
  assert.deepStrictEqual(runWithWasm('index', `
    Atomics.waitAsync(words, 1, 0, 50).value.then(console.log)
    console.log(notify(4, 1), api.waiterCount(words, 1))
  `, ['--experimental-wasm-threads']), [0, '0 1\ntimed-out\n', ''])
})

test('memory.atomic.notify does not reach waits on a buffer that was posted without its memory', { skip: WITHOUT_WASM || WITHOUT_HOST }, async t => {
  const { words, notify } = wasm()
  const worker = new Worker(`
    const { parentPort, workerData: { pure, words } } = require('worker_threads')
    const { value } = require(pure).waitAsync(words, 1, 0, 20000)
    parentPort.postMessage('waits')
    value.then(outcome => parentPort.postMessage(outcome))
  `, { eval: true, workerData: { pure: require.resolve('../../pure'), words } })
  t.after(() => worker.terminate())
  const next = () => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  assert.strictEqual(await next(), 'waits')
  assert.strictEqual(notify(4, 1), 0)
  assert.strictEqual(own.waiterCount(words, 1), 1)
  const outcome = next()
  assert.strictEqual(own.notify(words, 1), 1)
  assert.strictEqual(await outcome, 'ok')
})

test('memory.atomic.notify of WebAssembly reaches the waiters of /keep-alive', { skip: WITHOUT_WASM || WITHOUT_HOST }, () => {
  assert.deepStrictEqual(runWithWasm('keep-alive', `
    api.waitAsync(words, 1, 0).value.then(console.log)
    console.log(notify(4, 1))
  `), [0, '1\nok\n', ''])
})

test('Atomics.notify of a thread without the package does not reach the package\'s own queue', async t => {
  const words = newWords()
  const { value } = own.waitAsync(words, 0, 0, 10000)
  const worker = new Worker(`
    const { parentPort, workerData } = require('worker_threads')
    parentPort.postMessage((Atomics.notify || Atomics.wake)(workerData, 0, 1))
  `, { eval: true, workerData: words })
  t.after(() => worker.terminate())
  assert.strictEqual(await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)), 0)
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

/** How a Worker's plain wait on the word of a lock ends, which main unlocks while it waits. The Worker does not have the package. */
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

test('a lock that is released in a thread with an install wakes no plain waiter of a Worker that was started before', async t => {
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

test('a waiter of a function that was captured before the install comes after the package\'s own queue', { skip: WITHOUT_HOST }, async () => {
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
})

test('a time limit of vm that ends a callback leaves the lock held; unlock() of its thread frees it', () => {
  const context = vm.createContext({ runs: false })
  // A slow machine may not come to the callback in time, and may have taken the lock for it.
  for (let timeout = 20; !context.runs; timeout *= 2) {
    context.lock = new own.AsyncLock(new SharedArrayBuffer(4))
    assert.throws(() => vm.runInContext('lock.executeLocked(() => { runs = true; for (;;); })', context, { timeout }), /timed out/)
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
