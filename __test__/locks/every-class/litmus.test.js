'use strict'

// Litmus tests: for each class the few lines that show its purpose, in four threads at once. Two block, one awaits, and
// main awaits, too. No wait has a timeout: a lost wake-up is a hang, a missing order is a wrong number.
//
// Data beside the words of the family is read and written without Atomics: only the class orders these accesses.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { waiters } = require('../../fixtures/family-toolbox')
const { createScope, startWorker } = require('../../fixtures/queue-toolbox')

const PARTIES = 4
const MAIN = PARTIES - 1
const options = { timeout: 60000 }

/** Adds to a scope how this thread waits, and lets others act. */
function withWays (scope) {
  const { busy, data: { awaits }, sleep } = scope
  const wait = (thing, method, ...args) => thing[awaits ? `${method}Async` : method](...args)
  const pause = async (n) => {
    busy(0.003)
    if (awaits && n % 16 === 0) await sleep(0)
  }
  return Object.assign(scope, { pause, wait })
}

/**
 * Runs `party(scope)` in all threads, with the scope of queue-toolbox.js and `withWays`; `data.me` is its number.
 * `wait(thing, method)` is the method that blocks, or the one of the same name that is awaited.
 * @returns what each gave
 */
function play (t, data, party) {
  const dataOf = (me) => Object.assign({ me, parties: PARTIES, awaits: me >= 2 }, data)
  const inThread = `scope => (${party})((${withWays})(scope))`
  const others = Array.from({ length: MAIN }, (_, me) => startWorker(t, dataOf(me), inThread).done())
  return Promise.all([...others, party(withWays(createScope(dataOf(MAIN))))])
}

const shared = (words) => new SharedArrayBuffer(4 * words)
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0)

for (const Lock of ['AsyncLock', 'RwLock']) {
  test(`${Lock}: one at a time`, options, async t => {
    const ROUNDS = 800
    const sab = shared(2)
    await play(t, { sab, rounds: ROUNDS, Lock }, async ({ api, pause, wait, data: { sab, rounds, Lock } }) => {
      const lock = new api[Lock](sab)
      const counter = new Int32Array(sab, 4, 1)
      for (let n = 0; n < rounds; n++) {
        const token = await wait(lock, 'lock')
        const seen = counter[0]
        await pause(n)
        counter[0] = seen + 1
        token.unlock()
      }
    })
    assert.strictEqual(new Int32Array(sab)[1], PARTIES * ROUNDS)
    assert.strictEqual(waiters(sab), 0)
  })
}

test('RwLock: readers never see half of a write, and see all of it afterwards', options, async t => {
  const ROUNDS = 400
  const sab = shared(3)
  const seen = await play(t, { sab, rounds: ROUNDS }, async ({ api, pause, wait, data: { sab, rounds, me } }) => {
    const lock = new api.RwLock(sab)
    const pair = new Int32Array(sab, 4, 2)
    let last = 0
    for (let n = 0; n < rounds; n++) {
      const writing = await wait(lock, 'lock')
      pair[0]++
      await pause(n)
      pair[1]++
      const written = pair[1]
      // Some go on reading without letting a writer in between.
      if (n % 4 === me) {
        const reading = writing.downgrade()
        if (pair.some(word => word !== written)) throw new Error('somebody has written between writing and reading')
        reading.unlock()
      } else {
        writing.unlock()
      }
      for (let reads = 0; reads < 3; reads++) {
        const reading = await wait(lock, 'lockShared')
        if (pair[0] !== pair[1]) throw new Error('half of a pair was seen')
        if (pair[0] < written || pair[0] < last) throw new Error('what had been written was gone')
        last = pair[0]
        reading.unlock()
      }
    }
    return last
  })
  assert.strictEqual(Math.max(...seen), PARTIES * ROUNDS)
  assert.deepStrictEqual([new Int32Array(sab)[0], waiters(sab)], [0, 0])
})

test('Semaphore: with one permit, one at a time; with two, never three', options, async t => {
  const ROUNDS = 400
  const sab = shared(4)
  const one = new api.Semaphore(sab)
  const two = new api.Semaphore(sab, { byteOffset: 4 })
  one.release(1)
  two.release(2)
  await play(t, { sab, rounds: ROUNDS }, async ({ api, pause, wait, data: { sab, rounds } }) => {
    const one = new api.Semaphore(sab)
    const two = new api.Semaphore(sab, { byteOffset: 4 })
    const words = new Int32Array(sab)
    const COUNTER = 2
    const INSIDE = 3
    for (let n = 0; n < rounds; n++) {
      await wait(one, 'acquire')
      const seen = words[COUNTER]
      await pause(n)
      words[COUNTER] = seen + 1
      one.release()
      await wait(two, 'acquire')
      if (Atomics.add(words, INSIDE, 1) >= 2) throw new Error('three have had two permits')
      await pause(n)
      Atomics.sub(words, INSIDE, 1)
      two.release()
    }
  })
  assert.deepStrictEqual(Array.from(new Int32Array(sab)), [1, 2, PARTIES * ROUNDS, 0])
})

test('Semaphore: writes before a release are read after the acquire, around a ring', options, async t => {
  const ROUNDS = 300
  const sab = shared(PARTIES + 1)
  new api.Semaphore(sab).release()
  await play(t, { sab, rounds: ROUNDS }, async ({ api, wait, data: { sab, rounds, me, parties } }) => {
    const mine = new api.Semaphore(sab, { byteOffset: 4 * me })
    const next = new api.Semaphore(sab, { byteOffset: 4 * ((me + 1) % parties) })
    const counter = new Int32Array(sab, 4 * parties, 1)
    for (let n = 0; n < rounds; n++) {
      await wait(mine, 'acquire')
      if (counter[0] !== n * parties + me) throw new Error(`${counter[0]} was read, not ${n * parties + me}`)
      counter[0]++
      next.release()
    }
  })
  assert.deepStrictEqual(Array.from(new Int32Array(sab)), [1, 0, 0, 0, PARTIES * ROUNDS])
})

for (const count of ['one', 'all']) {
  test(`Condition: a turn goes around a ring; notified: ${count}`, options, async t => {
    const ROUNDS = 200
    // A lock, the turn, and a condition for each, or one for all.
    const sab = shared(2 + PARTIES)
    const data = { sab, rounds: ROUNDS, all: count === 'all' }
    await play(t, data, async ({ api, wait, data: { sab, rounds, me, parties, all } }) => {
      const lock = new api.AsyncLock(sab)
      const turn = new Int32Array(sab, 4, 1)
      const conditionOf = (party) => new api.Condition(sab, { byteOffset: 8 + (all ? 0 : 4 * party) })
      const mine = conditionOf(me)
      const next = conditionOf((me + 1) % parties)
      for (let n = 0; n < rounds; n++) {
        const token = await wait(lock, 'lock')
        // Not waitFor: a wait that gives true without a notification, or a notification without a wait, would show.
        while (turn[0] !== n * parties + me) {
          const told = await wait(mine, 'wait', token)
          if (!told || !token.locked) throw new Error(`told: ${told}, locked: ${token.locked}`)
          if (!all && turn[0] !== n * parties + me) throw new Error('another party was notified')
        }
        turn[0]++
        next.notify(all ? Infinity : 1)
        token.unlock()
      }
    })
    const [locked, turn] = new Int32Array(sab)
    assert.deepStrictEqual([locked, turn], [0, PARTIES * ROUNDS])
  })
}

test('Condition: each item that goes through a cell for one arrives once', options, async t => {
  const ROUNDS = 300
  const sab = shared(4)
  const got = await play(t, { sab, rounds: ROUNDS }, async ({ api, wait, data: { sab, rounds, me } }) => {
    const lock = new api.AsyncLock(sab)
    const filled = new api.Condition(sab, { byteOffset: 4 })
    const emptied = new api.Condition(sab, { byteOffset: 8 })
    const cell = new Int32Array(sab, 12, 1) // 0: empty
    // A blocking and an awaiting party put, the other two take.
    const puts = me % 2 === 0
    let sum = 0
    for (let n = 1; n <= rounds; n++) {
      const token = await wait(lock, 'lock')
      const [mine, ready] = puts ? [emptied, () => cell[0] === 0] : [filled, () => cell[0] !== 0]
      await wait(mine, 'waitFor', token, ready)
      if (puts) {
        cell[0] = n
        filled.notify(1)
      } else {
        sum += cell[0]
        cell[0] = 0
        emptied.notify(1)
      }
      token.unlock()
    }
    return sum
  })
  assert.strictEqual(sum(got), 2 * ROUNDS * (ROUNDS + 1) / 2)
  for (const at of [0, 4, 8]) assert.strictEqual(waiters(sab, at), 0)
})

test('Barrier: the writes of each party before are read by all after, and one leads', options, async t => {
  const ROUNDS = 200
  const sab = shared(1 + PARTIES)
  const led = await play(t, { sab, rounds: ROUNDS }, async ({ api, wait, data: { sab, rounds, me, parties } }) => {
    const barrier = new api.Barrier(sab, { parties })
    const cells = new Int32Array(sab, 4, parties)
    let led = 0
    for (let n = 1; n <= rounds; n++) {
      cells[me] = n
      for (const phase of ['written', 'read']) {
        const { leader } = await wait(barrier, 'wait')
        if (leader) led++
        const isRight = phase === 'read' || cells.every(cell => cell === n)
        if (!isRight) throw new Error(`${cells.join()} were read in round ${n}`)
      }
    }
    return led
  })
  assert.strictEqual(sum(led), 2 * ROUNDS)
  assert.strictEqual(waiters(sab), 0)
})

test('Latch: writes before counting down are read after waiting', options, async t => {
  const ROUNDS = 200
  const sab = shared(ROUNDS * (1 + PARTIES))
  await play(t, { sab, rounds: ROUNDS }, async ({ api, wait, data: { sab, rounds, me, parties } }) => {
    for (let n = 0; n < rounds; n++) {
      const byteOffset = 4 * n * (1 + parties)
      const latch = new api.Latch(sab, { count: parties, byteOffset })
      const cells = new Int32Array(sab, byteOffset + 4, parties)
      cells[me] = me + 1
      latch.countDown()
      await wait(latch, 'wait')
      if (!cells.every((cell, party) => cell === party + 1)) throw new Error(`${cells.join()} were read in round ${n}`)
    }
  })
  for (let n = 0; n < ROUNDS; n++) assert.strictEqual(waiters(sab, 4 * n * (1 + PARTIES)), 0)
})
