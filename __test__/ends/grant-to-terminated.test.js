'use strict'

// A grant or notification to a blocked, terminated thread before its end: it goes to the next waiter.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api, entry } = require('../subject')
const { Barrier, Condition, Latch, Semaphore } = api
const { busy, sleep, until, words } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')

const ROUNDS = 12

/** Starts a thread that runs `source`: a function of the package, `memory` and `flags`; resolves once `isReady()`. */
async function startBlocked (source, memory, isReady) {
  const worker = new Worker(`(${source})(require(${JSON.stringify(entry)}), require('worker_threads').workerData)`, {
    eval: true, workerData: memory
  })
  worker.on('error', (error) => { throw error })
  const exited = new Promise(resolve => worker.on('exit', resolve))
  await until(isReady, 'the thread is blocked')
  return { terminate: () => worker.terminate(), exited }
}

/** Returns the milliseconds from the termination to the grant. */
const delayOf = (round) => [0, 0.2, 1, 3, 5, 8][round % 6]

/** Returns how long it has been blocked by then: within its first slice, and later. */
const ageOf = (round) => [1, 10, 40, 90][round % 4]

async function giveToTheDying (round, thread, give) {
  await sleep(ageOf(round))
  thread.terminate()
  busy(delayOf(round))
  give()
  await thread.exited
}

/** Tests so many rounds of `scenario(round)`; in the small size half of them, and on the next Node the other half. */
function eachRound (title, scenario, rounds = ROUNDS) {
  const half = rounds / 2
  const first = size(0, half * size.partOf(2))
  test(title, { timeout: 60000 }, async t => {
    for (let round = first; round < first + size(rounds, half); round++) await scenario(round)
  })
}

const waiters = (memory, index = 0) => api.waiterCount(new Int32Array(memory), index)

for (const hot of [false, true]) {
  eachRound(`a permit comes back${hot ? ', also from code that the engine has optimised' : ''}`, async round => {
    const semaphore = Semaphore.create()
    const { buffer } = semaphore
    const thread = await startBlocked(({ Semaphore }, memory) => {
      const semaphore = new Semaphore(memory)
      for (;;) semaphore.acquire()
    }, buffer, () => waiters(buffer) === 1)
    for (let n = 0; hot && n < 8000; n++) {
      semaphore.release()
      while (semaphore.available > 0 || waiters(buffer) === 0);
    }
    await giveToTheDying(round, thread, () => semaphore.release(2))
    assert.strictEqual(semaphore.available, 2)
    assert.strictEqual(waiters(buffer), 0)
  })
}

eachRound('a permit goes to the next waiter', async round => {
  const semaphore = Semaphore.create()
  const { buffer } = semaphore
  const acquire = ({ Semaphore }, memory) => new Semaphore(memory).acquire(3)
  const thread = await startBlocked(acquire, buffer, () => waiters(buffer) === 1)
  const next = semaphore.acquireAsync(3)
  await giveToTheDying(round, thread, () => semaphore.release(3))
  await next
  assert.strictEqual(semaphore.available, 0)
})

eachRound('a notification of Atomics.notify goes to the next waiter', async round => {
  const array = words(1)
  const wait = ({ wait }, memory) => wait(new Int32Array(memory), 0, 0)
  const thread = await startBlocked(wait, array.buffer, () => waiters(array.buffer) === 1)
  const next = Atomics.waitAsync(array, 0, 0).value
  await giveToTheDying(round, thread, () => assert.strictEqual(Atomics.notify(array, 0, 1), 1))
  assert.strictEqual(await next, 'ok')
})

eachRound('a notification of a Condition goes to the next waiter', async round => {
  const sab = new SharedArrayBuffer(8)
  const lock = new api.AsyncLock(sab)
  const condition = new Condition(sab, { byteOffset: 4 })
  const wait = ({ AsyncLock, Condition }, sab) => new Condition(sab, { byteOffset: 4 }).wait(new AsyncLock(sab).lock())
  const thread = await startBlocked(wait, sab, () => waiters(sab, 1) === 1)
  const next = lock.executeLocked(token => condition.waitAsync(token))
  await until(() => waiters(sab, 1) === 2, 'both wait')
  await giveToTheDying(round, thread, () => assert.strictEqual(condition.notify(1), 1))
  assert.strictEqual(await next, true)
})

eachRound('a thread that a Latch or a Barrier wakes as it ends keeps no other waiter from being woken', async round => {
  const latch = Latch.create({ count: 1 })
  const wait = ({ Latch }, memory) => new Latch(memory, { count: 1 }).wait()
  const waiting = await startBlocked(wait, latch.buffer, () => waiters(latch.buffer) === 1)
  const told = latch.waitAsync()
  await giveToTheDying(round, waiting, () => latch.countDown())
  await told

  const barrier = Barrier.create({ parties: 3 })
  const arrive = ({ Barrier }, memory) => new Barrier(memory, { parties: 3 }).wait()
  const party = await startBlocked(arrive, barrier.buffer, () => require('util').inspect(barrier).includes('1'))
  await sleep(ageOf(round))
  const others = [barrier.waitAsync()]
  party.terminate()
  busy(delayOf(round))
  others.push(barrier.waitAsync())
  await Promise.all(others)
  await party.exited
}, 4)
