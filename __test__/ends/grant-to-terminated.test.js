'use strict'

// A blocked thread that is terminated, and has not ended yet, is given a lock, a permit or a notification: it goes to the next waiter.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api, entry } = require('../subject')
const { Barrier, Condition, Latch, Semaphore } = api
const { busy, sleep, until, words } = require('../fixtures/queue-toolbox')

const ROUNDS = 12

/** A thread that runs `source`, a function of the package, `memory` and `flags`; resolves once `isReady()`. */
async function startBlocked (source, memory, isReady) {
  const worker = new Worker(`(${source})(require(${JSON.stringify(entry)}), require('worker_threads').workerData)`, {
    eval: true, workerData: memory
  })
  worker.on('error', (error) => { throw error })
  const exited = new Promise(resolve => worker.on('exit', resolve))
  await until(isReady, 'the thread is blocked')
  return { terminate: () => worker.terminate(), exited }
}

/** How long after the thread has been told to end the thing is given, in milliseconds. */
const delayOf = (round) => [0, 0.2, 1, 3, 5, 8][round % 6]

/** How long it has been blocked by then: within its first slice, and later. */
const ageOf = (round) => [1, 10, 40, 90][round % 4]

async function giveToTheDying (round, thread, give) {
  await sleep(ageOf(round))
  thread.terminate()
  busy(delayOf(round))
  give()
  await thread.exited
}

for (const hot of [false, true]) {
  test(`a permit comes back${hot ? ', also from code that the engine has optimised' : ''}`, { timeout: 60000 }, async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const sab = new SharedArrayBuffer(4)
      const semaphore = new Semaphore(sab)
      const word = new Int32Array(sab)
      const thread = await startBlocked(({ Semaphore }, sab) => {
        const semaphore = new Semaphore(sab)
        for (;;) semaphore.acquire()
      }, sab, () => api.waiterCount(word, 0) === 1)
      for (let n = 0; hot && n < 8000; n++) {
        semaphore.release()
        while (semaphore.available > 0 || api.waiterCount(word, 0) === 0);
      }
      await giveToTheDying(round, thread, () => semaphore.release(2))
      assert.strictEqual(semaphore.available, 2)
      assert.strictEqual(api.waiterCount(word, 0), 0)
    }
  })
}

test('a permit goes to the next waiter', { timeout: 60000 }, async t => {
  for (let round = 0; round < ROUNDS; round++) {
    const sab = new SharedArrayBuffer(4)
    const semaphore = new Semaphore(sab)
    const thread = await startBlocked(({ Semaphore }, sab) => { new Semaphore(sab).acquire(3) }, sab,
      () => api.waiterCount(new Int32Array(sab), 0) === 1)
    const next = semaphore.acquireAsync(3)
    await giveToTheDying(round, thread, () => semaphore.release(3))
    await next
    assert.strictEqual(semaphore.available, 0)
  }
})

test('a notification of Atomics.notify goes to the next waiter', { timeout: 60000 }, async t => {
  for (let round = 0; round < ROUNDS; round++) {
    const array = words(1)
    const thread = await startBlocked(({ wait }, array) => { wait(array, 0, 0) }, array, () => api.waiterCount(array, 0) === 1)
    const next = Atomics.waitAsync(array, 0, 0).value
    await giveToTheDying(round, thread, () => assert.strictEqual(Atomics.notify(array, 0, 1), 1))
    assert.strictEqual(await next, 'ok')
  }
})

test('a notification of a Condition goes to the next waiter', { timeout: 60000 }, async t => {
  for (let round = 0; round < ROUNDS; round++) {
    const sab = new SharedArrayBuffer(8)
    const lock = new api.AsyncLock(sab)
    const condition = new Condition(sab, { byteOffset: 4 })
    const word = new Int32Array(sab, 4, 1)
    const thread = await startBlocked(({ AsyncLock, Condition }, sab) => {
      new Condition(sab, { byteOffset: 4 }).wait(new AsyncLock(sab).lock())
    }, sab, () => api.waiterCount(word, 0) === 1)
    const next = lock.executeLocked(token => condition.waitAsync(token))
    await until(() => api.waiterCount(word, 0) === 2, 'both wait')
    await giveToTheDying(round, thread, () => assert.strictEqual(condition.notify(1), 1))
    assert.strictEqual(await next, true)
  }
})

test('a thread that a Latch or a Barrier wakes as it ends keeps no other waiter from being woken', { timeout: 60000 }, async t => {
  for (let round = 0; round < 4; round++) {
    const sab = new SharedArrayBuffer(64)
    const latch = new Latch(sab, { count: 1 })
    const waiting = await startBlocked(({ Latch }, sab) => { new Latch(sab, { count: 1 }).wait() }, sab,
      () => api.waiterCount(new Int32Array(sab), 0) === 1)
    const told = latch.waitAsync()
    await giveToTheDying(round, waiting, () => latch.countDown())
    await told

    const barrier = new Barrier(sab, { parties: 3, byteOffset: 16 })
    const party = await startBlocked(({ Barrier }, sab) => { new Barrier(sab, { parties: 3, byteOffset: 16 }).wait() }, sab,
      () => require('util').inspect(barrier).includes('1'))
    await sleep(ageOf(round))
    const others = [barrier.waitAsync()]
    party.terminate()
    busy(delayOf(round))
    others.push(barrier.waitAsync())
    await Promise.all(others)
    await party.exited
  }
})
