'use strict'
// subjects: none
// timeout: 120

// The system fails: it gives no thread, no memory. Each ends in working or in a clear error, and nothing that others
// wait for is lost. A clock that fails, which none does, has Rust's standard library panic in the midst of an
// operation: that shows what a panic does.

const assert = require('assert')
const { spawnSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const { runForJSON, runNode } = require('../fixtures/run-node')

const force = JSON.stringify(path.join(__dirname, '..', '..', 'force'))

/** Builds fixtures/faults.c: `{ library, remove }`, or why it cannot be done. */
function build () {
  if (process.platform !== 'linux') return { missing: 'functions of the system are replaced on Linux only' }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'faults-'))
  const library = path.join(folder, 'faults.so')
  const remove = () => {
    if (fs.existsSync(library)) fs.unlinkSync(library)
    fs.rmdirSync(folder)
  }
  const { status, error } = spawnSync(
    'cc',
    ['-shared', '-fPIC', '-O1', '-o', library, path.join(__dirname, '..', 'fixtures', 'faults.c'), '-ldl'],
    { encoding: 'utf8' }
  )
  // Not where there is no compiler, or no glibc.
  const preloads =
    status === 0 && spawnSync(process.execPath, ['-e', ''], { env: { LD_PRELOAD: library } }).status === 0
  if (preloads) return { library, remove }
  remove()
  return { missing: `fixtures/faults.c is not compiled or loaded here: ${error ? error.message : `cc: ${status}`}` }
}

const { library, remove, missing: skip } = build()
if (remove) process.on('exit', remove)
const env = (faults) => Object.assign({ LD_PRELOAD: library, RUST_BACKTRACE: '0' }, faults)

test('without a thread for the service, what needs it says so, and the rest works', { skip }, async t => {
  const result = await runForJSON(t, ['-e', `
    const { Worker } = require('worker_threads')
    const api = require(${force})
    const array = new Int32Array(new SharedArrayBuffer(32))
    const lock = new api.AsyncLock(array.buffer, { byteOffset: 16 })
    const outcome = async (call) => { try { return await call() } catch (error) { return error.message } }
    async function run () {
      const token = lock.tryLock()
      const worker = new Worker(\`
        const { workerData, parentPort } = require('worker_threads')
        const { AsyncLock } = require(${force})
        const array = new Int32Array(workerData)
        const wait = () => parentPort.postMessage(Atomics.wait(array, 4, 1, 60))
        new AsyncLock(workerData, { byteOffset: 16 }).executeLockedSync(wait)
        Atomics.wait(array, 1, 0)\`, { eval: true, workerData: array.buffer })
      const told = new Promise(resolve => worker.on('message', resolve))
      while (lock.waiters === 0) await new Promise(setImmediate)
      const untimed = Atomics.waitAsync(array, 0, 0).value
      const timed = await outcome(() => Atomics.waitAsync(array, 0, 0, 1).value)
      const claim = await outcome(() => lock.lockAsync({ timeout: 1 }))
      const left = api.waiterCount(array, 0)
      token.unlock()
      const blocked = await told
      while (api.waiterCount(array, 1) === 0) await new Promise(setImmediate)
      const ended = await worker.terminate()
      const gone = api.waiterCount(array, 1)
      const woken = Atomics.notify(array, 0)
      const ok = await untimed
      delete process.env.FAULT_THREADS
      const later = await Atomics.waitAsync(array, 0, 0, 1).value
      console.log(JSON.stringify({ timed, claim, left, blocked, gone, woken, ok, later, locked: lock.locked }))
    }
    run()`], { env: env({ FAULT_THREADS: '1' }) })
  const limits = 'the system allows this process no more threads or file descriptors (ulimit -u, ulimit -n)'
  const refusal = `atomics-waitasync: the timer could not be started: ${limits}`
  assert.deepStrictEqual(result, {
    timed: refusal,
    claim: refusal,
    left: 1,
    blocked: 'timed-out',
    gone: 0,
    woken: 1,
    ok: 'ok',
    later: 'timed-out',
    locked: false
  })
})

test(
  'a panic while a thread blocks is an error of that call, or ends the process and says why',
  { skip, timeout: 110000 },
  async t => {
    let failed = 0
    for (let nth = 1; nth < 9; nth++) {
      const { code, signal, stdout, stderr } = await runNode(
        t,
        [
          '-e',
          `
      const { Worker } = require('worker_threads')
      require(${force})
      const words = new Int32Array(new SharedArrayBuffer(8))
      const attempt = (call) => { try { return call() } catch (error) { return error.message } }
      // It counts the waiters: a call of the package in this thread would put right what the failure has left.
      const worker = new Worker(\`
        const { parentPort, workerData } = require('worker_threads')
        const api = require(${force})
        parentPort.on('message', () => parentPort.postMessage(api.waiterCount(workerData, 0)))
        parentPort.postMessage(api.waiterCount(workerData, 0))\`, { eval: true, workerData: words })
      const answers = []
      worker.on('message', (count) => {
        if (answers.length > 0) {
          answers.push(count, Atomics.wait(words, 0, 0, 20), Atomics.notify(words, 0))
          console.log(JSON.stringify(answers))
          return worker.terminate()
        }
        process.env.FAULT_CLOCK = '${nth}'
        answers.push(attempt(() => Atomics.wait(words, 0, 0, 20)))
        delete process.env.FAULT_CLOCK
        worker.postMessage('')
      })`
        ],
        { env: env({}) }
      )
      if (signal === 'SIGABRT') {
        // The clock of a mutex or of a condition variable of the system: Rust's standard library gives up.
        assert(/fatal runtime error: .*aborting/.test(stderr), stderr)
        failed++
        continue
      }
      assert.strictEqual(code, 0, stderr)
      const [first, ...rest] = JSON.parse(stdout)
      assert.deepStrictEqual(rest, [0, 'timed-out', 0])
      assert(first === 'timed-out' || first === 'atomics-waitasync: the operation failed', first)
      if (first !== 'timed-out') failed++
    }
    assert(failed > 1, `${failed} of 8 have failed`)
  }
)

test('a panic in a delivery, and the rest is delivered by another', { skip, timeout: 110000 }, async t => {
  let failed = 0
  for (let nth = 1; nth < 10; nth++) {
    const { code, signal, stdout, stderr } = await runNode(
      t,
      [
        '-e',
        `
    const { Worker } = require('worker_threads')
    const { AsyncLock, RwLock, Semaphore } = require(${force})
    const words = new Int32Array(new SharedArrayBuffer(32))
    const [lock, second, third, rwLock, semaphore] = [AsyncLock, AsyncLock, AsyncLock, RwLock, Semaphore].map(
      (Class, n) => new Class(words.buffer, { byteOffset: 12 + 4 * n }))
    const worker = new Worker(\`
      const { parentPort, workerData: words } = require('worker_threads')
      const { AsyncLock, RwLock, Semaphore } = require(${force})
      const [lock, second, third, rwLock, semaphore] = [AsyncLock, AsyncLock, AsyncLock, RwLock, Semaphore].map(
        (Class, n) => new Class(words.buffer, { byteOffset: 12 + 4 * n }))
      const tokens = [lock.lock(), second.lock(), third.lock(), rwLock.lock()]
      parentPort.postMessage('')
      Atomics.wait(words, 0, 0)
      for (const token of tokens) token.unlock()
      semaphore.release(2)
      Atomics.notify(words, 2)
      Atomics.store(words, 1, 1)
      // Main is not alone.
      parentPort.on('message', () => process.exit())\`, { eval: true, workerData: words })
    worker.on('message', async () => {
      const promises = [
        lock.lockAsync(), second.lockAsync(), third.lockAsync(), rwLock.lockSharedAsync(), rwLock.lockSharedAsync(),
        semaphore.holdAsync(), semaphore.acquireAsync(), Atomics.waitAsync(words, 2, 0).value,
        lock.lockAsync({ timeout: 1 }).catch(error => error.name)
      ]
      Atomics.store(words, 0, 1)
      Atomics.notify(words, 0)
      while (Atomics.load(words, 1) === 0);
      for (const end = Date.now() + 5; Date.now() < end;);
      process.env.FAULT_CLOCK = '${nth}'
      // A delivery that is lost keeps none of these.
      setTimeout(() => process.exit(1), 20000).unref()
      const granted = await Promise.all(promises)
      delete process.env.FAULT_CLOCK
      const all = [lock, second, third, rwLock]
      const look = () => all.map(each => each.locked).concat(rwLock.readers, semaphore.available)
      const held = look()
      for (const token of granted.slice(0, 6)) token.unlock()
      console.log(JSON.stringify([held, granted.slice(7), look()]))
      worker.postMessage('')
    })`
      ],
      { env: env({}) }
    )
    if (stderr.includes('panicked')) failed++
    if (signal === 'SIGABRT') continue
    assert.deepStrictEqual([code, signal], [0, null], stderr)
    const held = [true, true, true, false, 2, 0]
    assert.deepStrictEqual(
      JSON.parse(stdout),
      [held, ['ok', 'TimeoutError'], [false, false, false, false, 0, 1]],
      stderr
    )
  }
  assert(failed > 1, `${failed} of 9 have failed`)
})

test('a thread that holds much and gets no memory for more says so, and keeps what it holds', { skip }, async t => {
  const result = await runForJSON(
    t,
    [
      '-e',
      `
    const { AsyncLock } = require(${force})
    const buffer = new SharedArrayBuffer(4 * 200)
    const locks = Array.from({ length: 200 }, (_, n) => new AsyncLock(buffer, { byteOffset: 4 * n }))
    const tokens = []
    let message
    // Room for 128: at 20 bytes each.
    process.env.FAULT_MEMORY = String(20 * 128)
    try {
      for (const lock of locks) tokens.push(lock.tryLock())
    } catch (error) {
      message = error.name + ': ' + error.message
    }
    const count = tokens.length
    const isFree = !locks[count].locked
    delete process.env.FAULT_MEMORY
    while (tokens.length < 200) tokens.push(locks[tokens.length].tryLock())
    const holders = new Set(locks.map(lock => lock.holder))
    const unlocked = tokens.every(token => token.unlock())
    const locked = locks.some(lock => lock.locked)
    console.log(JSON.stringify({ message, count, isFree, holders: [...holders], unlocked, locked }))`
    ],
    { env: env({}) }
  )
  assert.deepStrictEqual(
    Object.assign(result, {
      message: /^RangeError: Array buffer allocation failed/.test(result.message) || result.message,
      count: result.count < 128 && result.count >= 32
    }),
    { message: true, count: true, isFree: true, holders: [0], unlocked: true, locked: false }
  )
})

const needs16 = { skip: skip || (Number(process.versions.node.split('.')[0]) < 16 && 'it needs Node 16') }
const withoutThreads = path.join(__dirname, '..', 'fixtures', 'without-threads.js')

test('without threads, requests of /processes try again and again, whichever way they wait', needs16, async t => {
  const result = await runForJSON(t, [withoutThreads, 'main', scratchFolder(t)], { env: env({ FAULT_THREADS: '1' }) })
  const granted = 'granted'
  const late = 'ERR_TIMEOUT'
  assert.deepStrictEqual(result, { late, request: granted, shared: granted, requestSync: [late, granted] })
})

test('what a lock that waits for the disk needs is done although the only thread is blocked', needs16, async t => {
  const result = await runForJSON(t, [withoutThreads, 'blocked', scratchFolder(t)], { env: env() })
  assert.deepStrictEqual(result, ['granted', 'granted'])
})
