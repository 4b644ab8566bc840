'use strict'

// Tasks of one thread that want one lock: it goes from one to the next without a turn of the event loop, but not for
// long; and nothing is lost if the thread ends, or is interrupted, in between.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { api, entry } = require('../subject')
const { AsyncLock, RwLock, Semaphore, locks, snapshot } = api
const { onAQuietMachine, runChild, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

const TASKS = 3000
/** How many hand-overs there may be between two turns of the event loop, and the task that a turn begins with. */
const MOST = 64 + 1

const newMemory = (bytes = 4) => new SharedArrayBuffer(bytes)

/** By name: gives a function that runs a callback with what is requested. */
const forms = {
  executeLocked: (lock = new AsyncLock()) => callback => lock.executeLocked(callback),
  'lockAsync and unlock': (lock = new AsyncLock()) => async callback => {
    const token = await lock.lockAsync()
    try {
      return await callback()
    } finally {
      token.unlock()
    }
  },
  'RwLock executeLocked': (lock = new RwLock()) => callback => lock.executeLocked(callback),
  use: () => {
    const semaphore = new Semaphore(newMemory())
    semaphore.release()
    return callback => semaphore.use(1, callback)
  },
  'locks.request': () => callback => locks.request('one thread', callback),
  'locks.holdAsync and unlock': () => async callback => {
    const token = await locks.holdAsync('one thread')
    try {
      return await callback()
    } finally {
      token.unlock()
    }
  }
}

for (const form of Object.keys(forms)) {
  test(`${form}: one after the other, in their order; an immediate waits for no more than so many`, async () => {
    const execute = forms[form]()
    let [inside, since, most, turns, isOver] = [0, 0, 0, 0, false]
    const order = []
    const turn = () => {
      turns++
      since = 0
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const tasks = Array.from({ length: TASKS }, (_, n) => execute(async () => {
      assert.strictEqual(inside++, 0)
      most = Math.max(most, ++since)
      order.push(n)
      await undefined
      inside--
      return n
    }))
    assert.deepStrictEqual(await Promise.all(tasks), tasks.map((_, n) => n))
    isOver = true
    assert.deepStrictEqual(order, tasks.map((_, n) => n))
    assert.ok(most <= MOST, `${most} tasks without a turn of the event loop`)
    assert.ok(turns >= Math.floor(TASKS / MOST), `${turns} turns`)
  })
}

for (const form of Object.keys(forms)) {
  test(`${form}: tasks need no turn of the event loop`, async () => {
    let most = 0
    // The machine may be so busy that the time for hand-overs is over before the last one: then once more.
    for (let n = 0; n < 50 * slowness && most < 20; n++) {
      const execute = forms[form]()
      let done = 0
      const tasks = Array.from({ length: 20 }, () => execute(async () => { done++ }))
      // The event loop does not turn meanwhile.
      for (let tick = 0; tick < 1000; tick++) await undefined
      most = Math.max(most, done)
      await Promise.all(tasks)
      await new Promise(setImmediate)
    }
    assert.strictEqual(most, 20)
  })
}

test('a worker that blocks has its turn among tasks of main, in a strict line its own', { timeout: 60000 }, async t => {
  const sab = newMemory(8)
  for (const Class of [AsyncLock, RwLock]) {
    const lock = new Class(sab, { byteOffset: Class === RwLock ? 4 : 0 })
    let done = 0
    let isOver = false
    const doneAt = newMemory()
    const task = async () => { Atomics.store(new Int32Array(doneAt), 0, ++done) }
    let release
    const released = new Promise(resolve => { release = resolve })
    const first = lock.executeLocked(() => released)
    const before = Array.from({ length: 200 }, () => lock.executeLocked(task))
    const source = `
      const { workerData: [sab, byteOffset, doneAt], parentPort } = require('worker_threads')
      const lock = new (require(${JSON.stringify(entry)}).${Class.name})(sab, { byteOffset })
      const token = lock.lock()
      const done = Atomics.load(new Int32Array(doneAt), 0)
      token.unlock()
      parentPort.postMessage(done)`
    const worker = new Worker(source, { eval: true, workerData: [sab, lock.byteOffset, doneAt] })
    t.after(() => worker.terminate())
    const told = new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
    await until(() => lock.waiters === before.length + 1, 'the worker waits')
    // As long as it waits, more and more come.
    const more = async () => {
      while (!isOver) {
        await lock.executeLocked(task)
        await new Promise(setImmediate)
      }
    }
    const others = Array.from({ length: 50 }, more)
    release()
    const seen = await told
    isOver = true
    await Promise.all([first].concat(before, others))
    if (Class === RwLock) assert.strictEqual(seen, before.length)
    assert.strictEqual(lock.locked, false)
  }
})

test('the tasks end, and what is held and awaited is right in each of them', async () => {
  const lock = new AsyncLock(newMemory())
  const { id } = lock
  const tasks = Array.from({ length: 100 }, (_, n) => lock.executeLocked(async token => {
    // The first one begins before the others have come.
    await undefined
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.ownerDied, false)
    assert.strictEqual(lock.holder, 0)
    assert.strictEqual(lock.waiters, 99 - n)
    const { held, waiting } = snapshot()
    assert.strictEqual(held.filter(entry => entry.id === id).length, 1)
    assert.strictEqual(waiting.filter(entry => entry.id === id).length, 99 - n)
    // Some give it back themselves.
    if (n % 3 === 0) token.unlock()
  }))
  await Promise.all(tasks)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(lock.waiters, 0)
})

test('a task that fails, is aborted or is late keeps no other from its turn', async () => {
  const lock = new AsyncLock(newMemory())
  const controller = typeof AbortController === 'function' ? new AbortController() : undefined
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, n) => {
    const options = n % 4 === 1 ? { timeout: 1e-3 } : n % 4 === 2 && controller ? { signal: controller.signal } : {}
    return lock.executeLocked(async () => {
      if (n === 4 && controller) controller.abort()
      if (n === 0) await new Promise(resolve => setTimeout(resolve, 5))
      if (n % 4 === 3) throw new Error('mine')
      return n
    }, options).catch(error => error.name)
  }))
  outcomes.forEach((outcome, n) => {
    if (n % 4 === 0) assert.strictEqual(outcome, n)
    if (n % 4 === 1) assert.strictEqual(outcome, 'TimeoutError')
    if (n % 4 === 3) assert.strictEqual(outcome, 'Error')
  })
  assert.strictEqual(lock.locked, false)
})

// ——— a thread that is interrupted, or ends ———

// More than a millisecond after a turn of the event loop, what is handed over waits for the next one: no job tells it.
test('a hand-over of which JavaScript could not be told comes again', t => onAQuietMachine(async () => {
  const { code, signal, lines, stderr } = await runChild(t, async ({ api, say }) => {
    process.on('uncaughtException', error => say(`uncaught ${error.message}`))
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const rwLock = new api.RwLock(new SharedArrayBuffer(4))
    const order = []
    const task = n => async () => {
      order.push(n)
      // The next ones to be told, at the end of this one and once more.
      if (n === 2) global.broken.before = 1
    }
    await Promise.all([0, 1, 2, 3, 4, 5].map(n => lock.executeLocked(task(n))))
    say(`${order} ${lock.locked} ${global.broken.before}`)
    order.length = 0
    await Promise.all([0, 1, 2, 3, 4, 5].map(n => rwLock[n < 4 ? 'executeLocked' : 'executeShared'](task(n))))
    say(`${order} ${rwLock.locked} ${rwLock.readers} ${global.broken.before}`)
  }, undefined, { execArgv: ['-r', require.resolve('../fixtures/broken-settle.js')] })
  assert.deepStrictEqual([code, signal], [0, null], stderr)
  // A failure in the midst of a job is no error of the program's.
  assert.deepStrictEqual(lines, ['0,1,2,3,4,5 false 0', '0,1,2,3,4,5 false 0 0'])
}))

/** The task that ends its thread. Only the first hand-over after a turn of the event loop always is at once. */
const last = end => isTold(end) ? 1 : 5
/** How a worker ends in the midst of its tasks; each is the source of what its last task does. */
const ends = {
  'process.exit() in a callback': 'process.exit()',
  'an uncaught exception': 'process.nextTick(() => { throw new Error("mine") }); await new Promise(() => {})',
  'worker.terminate() in a callback': 'parentPort.postMessage("now"); for (;;);',
  'process.exit() as the next task is told': 'global.onTold = () => process.exit()',
  'worker.terminate() as the next task is told': 'global.onTold = () => { parentPort.postMessage("now"); for (;;); }'
}

const isTold = end => end.includes('is told')
/** Node 10 aborts where a worker with a hook on promises ends in a callback of an addon's. */
const hooksCrash = parseInt(process.versions.node, 10) < 12 && 'this Node aborts there'

for (const end of Object.keys(ends)) {
  const skip = isTold(end) && hooksCrash
  test(`a thread that ends among its tasks passes the lock on: ${end}`, { timeout: 60000, skip }, async t => {
    const sab = newMemory(8)
    const words = new Int32Array(sab)
    const lock = new AsyncLock(sab)
    const source = `
      const { parentPort, workerData: sab } = require('worker_threads')
      const { createHook } = require('async_hooks')
      const { AsyncLock } = require(${JSON.stringify(entry)})
      // A promise is resolved within the release by which the task before it ends.
      if (${isTold(end)}) createHook({ promiseResolve () { const { onTold } = global; if (onTold) onTold() } }).enable()
      const lock = new AsyncLock(sab)
      let count = 0
      for (let n = 0; n < 100; n++) lock.executeLocked(async () => {
        while (Atomics.load(new Int32Array(sab), 1) === 0) await new Promise(setImmediate)
        if (++count !== ${last(end)}) return
        const end = async () => { ${ends[end]} }
        if (!${isTold(end)}) return end()
        // After the promise of this callback.
        Promise.resolve().then(end)
      })
      setInterval(() => {}, 1000)`
    const worker = new Worker(source, { eval: true, workerData: sab })
    worker.on('error', error => assert.strictEqual(error.message, 'mine'))
    worker.on('message', () => worker.terminate())
    const ended = new Promise(resolve => worker.on('exit', resolve))
    await until(() => lock.waiters === 99, 'the tasks wait')
    const promise = lock.lockAsync()
    Atomics.store(words, 1, 1)
    const token = await promise
    assert.strictEqual(token.ownerDied, true)
    await ended
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(lock.locked, false)
  })
}
