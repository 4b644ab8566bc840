'use strict'

// long: each of its tests is a storm, and each subject has the same queue

// Blocked threads and promises, timeouts, notifications of any number and terminated threads at the same time. In the
// end, the waiters that notify counted are those that were woken.
//
// Every program is made from a seed, which it prints; SEED=n repeats it as far as threads can be repeated.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { now, randomFrom, sleep, startWorker, until, words } = require('../fixtures/queue-toolbox')

const seed = Number(process.env.SEED || Date.now() % 1e9)

// The layout of the shared memory: the words that are waited on, then what is counted.
const WORDS = 8
const LENGTH = WORDS + 8
const [WOKEN, OK, TIMED_OUT, NOT_EQUAL, OVER] = [0, 1, 2, 3, 4].map(each => WORDS + each)

/**
 * Waits, blocking or not, and notifies, until it is over; adds all outcomes to counters in shared memory, which survive
 * the thread.
 */
const participant = async ({ Atomics, now, randomFrom, data: { array, seed, notifies, tally, WORDS, isMain } }) => {
  const [WOKEN, OK, TIMED_OUT, NOT_EQUAL, OVER] = [0, 1, 2, 3, 4].map(each => WORDS + each)
  const random = randomFrom(seed)
  const pick = (n) => Math.floor(n * random())
  const count = { ok: OK, 'timed-out': TIMED_OUT, 'not-equal': NOT_EQUAL }
  // `tally`: how many waits this thread has begun and how many outcomes it has seen.
  const begin = () => Atomics.add(tally, 0, 1)
  const end = (outcome) => {
    Atomics.add(array, count[outcome], 1)
    Atomics.add(tally, 1, 1)
  }
  const pending = new Set()
  const patience = () => random() < 0.3 ? undefined : 4 * random() ** 3
  while (Atomics.load(array, OVER) === 0) {
    const index = pick(WORDS)
    const what = random()
    if (what < 0.4 && notifies) {
      const woken = Atomics.notify(array, index, random() < 0.2 ? undefined : 1 + pick(3))
      Atomics.add(array, WOKEN, woken)
    } else if (what < 0.5 && notifies) {
      // The value is part of it, too.
      Atomics.add(array, index, 1)
    } else if (what < 0.7 && !isMain) {
      begin()
      // Never without a timeout: all threads could come to block at once.
      end(Atomics.wait(array, index, Atomics.load(array, index), 3 * random() ** 3))
    } else if (pending.size < 200) {
      begin()
      const { async, value } = Atomics.waitAsync(array, index, Atomics.load(array, index), patience())
      if (!async) end(value)
      else {
        const settled = value.then(outcome => {
          pending.delete(settled)
          end(outcome)
        })
        pending.add(settled)
      }
    }
    if (random() < 0.1) await new Promise(resolve => setImmediate(resolve))
  }
  // The thread that runs `clear` notifies the rest.
  await Promise.all(pending)
}

/** Starts so many threads, and this one as another participant. `tally` is that of those that live. */
function start (t, count, seed) {
  console.log(`# seed ${seed}`)
  const array = words(LENGTH)
  const tally = words(2)
  const random = randomFrom(seed)
  const dataOf = (more) => {
    return Object.assign({ array, tally, seed: Math.floor(2 ** 31 * random()), notifies: true, WORDS }, more)
  }
  const threads = Array.from({ length: count }, () => startWorker(t, dataOf(), participant))
  const main = participant({ Atomics, now, randomFrom, data: dataOf({ isMain: true }) })
  return { array, tally, threads, main, random, dataOf }
}

function sums (array) {
  return { woken: array[WOKEN], ok: array[OK], timedOut: array[TIMED_OUT], notEqual: array[NOT_EQUAL] }
}

/** Notifies until all participants have finished, and counts the woken waiters. */
async function clear (array, finished) {
  let all = false
  finished.then(() => { all = true }, () => { all = true })
  while (!all) {
    for (let index = 0; index < WORDS; index++) Atomics.add(array, WOKEN, Atomics.notify(array, index))
    await sleep(1)
  }
}

test('notify wakes as many waiters as it says: threads, promises and timeouts', { timeout: 60000 }, async t => {
  const { array, tally, threads, main } = start(t, 3, seed)
  const finished = Promise.all([main].concat(threads.map(thread => thread.done())))
  await sleep(1200)
  await until(() => array[OK] > 100 && array[TIMED_OUT] > 100, 'it is a stress')
  Atomics.store(array, OVER, 1)
  await clear(array, finished)
  await finished
  const { woken, ok, timedOut, notEqual } = sums(array)
  assert.strictEqual(woken, ok, `seed ${seed}: notify counted ${woken}, and ${ok} were woken`)
  assert.strictEqual(ok + timedOut + notEqual, tally[0], `seed ${seed}`)
  assert.strictEqual(tally[0], tally[1], `seed ${seed}`)
  for (let index = 0; index < WORDS; index++) assert.strictEqual(api.waiterCount(array, index), 0)
})

test('notify wakes as many waiters as it says: threads that are terminated, too', { timeout: 60000 }, async t => {
  const { array, tally, threads, main, random, dataOf } = start(t, 2, seed + 1)

  // They only wait, so that no notification is lost to the count with a thread that dies between notifying and
  // counting.
  const dead = []
  const deadline = now() + 1500
  while (now() < deadline) {
    const own = words(2)
    const victim = startWorker(t, dataOf({ tally: own, notifies: false }), participant)
    await until(() => Atomics.load(own, 0) > 20, 'the victim waits')
    await sleep(30 * random())
    await victim.terminate()
    dead.push(own)
  }
  Atomics.store(array, OVER, 1)
  const finished = Promise.all([main].concat(threads.map(thread => thread.done())))
  await clear(array, finished)
  await finished
  // Only a waiter of a dead thread may have been woken without counting it.
  const open = dead.reduce((sum, own) => sum + own[0] - own[1], 0)
  const { woken, ok } = sums(array)
  assert.strictEqual(tally[0], tally[1], `seed ${seed}`)
  assert.ok(woken >= ok, `seed ${seed}: ${ok} were woken, but notify counted ${woken}`)
  const missing = `notify counted ${woken}, but ${ok} were woken, and only ${open} can have died before they noticed`
  assert.ok(woken - ok <= open, `seed ${seed}: ${missing}`)
  for (let index = 0; index < WORDS; index++) assert.strictEqual(api.waiterCount(array, index), 0)
})

test('a thread that dies while no thread notifies takes no notification along', { timeout: 60000 }, async t => {
  console.log(`# seed ${seed}`)
  const random = randomFrom(seed + 2)
  for (let round = 0; round < 8; round++) {
    const array = words(LENGTH)
    const seeds = [0, 1].map(() => Math.floor(2 ** 31 * random()))
    const [victim, other] = seeds.map(seed => startWorker(t, { array, seed, WORDS }, scope => {
      const { Atomics, data: { array, seed, WORDS }, randomFrom } = scope
      const random = randomFrom(seed)
      const pick = () => Math.floor(WORDS * random())
      for (let n = 0; n < 200; n++)
        Atomics.waitAsync(array, pick(), 0).value.then(() => Atomics.add(array, WORDS + 1, 1))
    }))
    await Promise.all([victim.done(), other.done()])
    let mine = 0
    const promises = []
    for (let n = 0; n < 100; n++) promises.push(Atomics.waitAsync(array, n % WORDS, 0).value.then(() => { mine++ }))
    await victim.terminate()
    let woken = 0
    for (let n = 0; n < 1000; n++) woken += Atomics.notify(array, n % WORDS, Math.floor(4 * random()))
    for (let index = 0; index < WORDS; index++) woken += Atomics.notify(array, index)
    assert.strictEqual(woken, 300)
    await Promise.all(promises)
    assert.strictEqual(mine, 100)
    await until(() => Atomics.load(array, OK) === 200, 'those of the live thread are woken')
    await other.terminate()
  }
})

test('a lock made of wait, waitAsync and notify excludes, and serves every waiter', { timeout: 60000 }, async t => {
  // The usual lock of three states: 0 free, 1 taken, 2 taken and perhaps waited for.
  const array = words(4)
  const [THREADS, TIMES] = [3, 1500]
  const threads = Array.from({ length: THREADS }, () => startWorker(t, { array, TIMES }, ({ Atomics, data }) => {
    const { array, TIMES } = data
    for (let n = 0; n < TIMES; n++) {
      let state = Atomics.compareExchange(array, 0, 0, 1)
      while (state !== 0) {
        if (state === 2 || Atomics.compareExchange(array, 0, 1, 2) !== 0)
          Atomics.wait(array, 0, 2, n % 7 === 0 ? 0.05 : undefined)
        state = Atomics.compareExchange(array, 0, 0, 2)
      }
      array[1] = array[1] + 1 // not atomically: only the lock keeps this right
      if (Atomics.sub(array, 0, 1) !== 1) {
        Atomics.store(array, 0, 0)
        Atomics.notify(array, 0, 1)
      }
    }
  }))
  const promising = async () => {
    for (let n = 0; n < TIMES / 3; n++) {
      let state = Atomics.compareExchange(array, 0, 0, 1)
      while (state !== 0) {
        if (state === 2 || Atomics.compareExchange(array, 0, 1, 2) !== 0) {
          const { async, value } = Atomics.waitAsync(array, 0, 2, n % 7 === 0 ? 0.05 : undefined)
          if (async) await value
        }
        state = Atomics.compareExchange(array, 0, 0, 2)
      }
      array[1] = array[1] + 1
      if (n % 5 === 0) await null
      if (Atomics.sub(array, 0, 1) !== 1) {
        Atomics.store(array, 0, 0)
        Atomics.notify(array, 0, 1)
      }
    }
  }
  await Promise.all([promising(), promising(), promising()].concat(threads.map(thread => thread.done())))
  assert.strictEqual(array[1], (THREADS + 1) * TIMES)
  assert.strictEqual(api.waiterCount(array, 0), 0)
})
