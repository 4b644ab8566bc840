'use strict'
// oldest: installed (there an install puts waitAsync into the global Atomics)

// Atomics.notify: which waiters it wakes, in which order, and what it counts.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { NO_BIGINT64, now, randomFrom, startWorker, until, words } = require('../fixtures/queue-toolbox')

/** Registers `count` promises on a word; `outcomes` gets what they settle to. */
function lineUp (array, index, count, timeout) {
  const outcomes = []
  const all = []
  for (let n = 0; n < count; n++) {
    const { async, value } = Atomics.waitAsync(array, index, array[index], timeout)
    assert.strictEqual(async, true)
    all.push(value.then(outcome => { outcomes.push(outcome) }))
  }
  return { outcomes, all: Promise.all(all) }
}

/**
 * Makes a line of blocked threads and promises, in the given order: 'thread' a blocked thread, 'worker' a promise of
 * one, 'main' a promise of this thread. Each writes its number into `log` when it is woken.
 */
async function mixedLine (t, array, index, kinds) {
  const log = words(kinds.length + 1) // how many have been woken, then their numbers
  const promiser = startWorker(t, { array, index, log }, ({ Atomics, data: { array, index, log }, receive }) => {
    const next = async () => {
      const number = await receive()
      if (number < 0) return
      Atomics.waitAsync(array, index, array[index]).value.then(() => { log[Atomics.add(log, 0, 1) + 1] = number })
      return next()
    }
    return next()
  })
  for (let number = 0; number < kinds.length; number++) {
    if (kinds[number] === 'main') {
      Atomics.waitAsync(array, index, array[index]).value.then(() => { log[Atomics.add(log, 0, 1) + 1] = number })
    } else if (kinds[number] === 'worker') {
      promiser.worker.postMessage(number)
    } else {
      startWorker(t, { array, index, log, number }, ({ Atomics, data: { array, index, log, number } }) => {
        Atomics.wait(array, index, array[index])
        log[Atomics.add(log, 0, 1) + 1] = number
      })
    }
    await until(
      () => api.waiterCount(array, index) === number + 1,
      `waiter ${number} (${kinds[number]}) is in the line`
    )
  }
  t.after(() => promiser.worker.postMessage(-1))
  return {
    woken: () => Array.from(log.subarray(1, 1 + Atomics.load(log, 0))),
    until: (count) => until(() => Atomics.load(log, 0) >= count, `${count} have been woken`)
  }
}

test('blocked threads and promises leave the line in the order they came', async t => {
  const array = words(2)
  const kinds = ['main', 'thread', 'worker', 'main', 'thread', 'worker', 'worker', 'thread', 'main', 'main']
  const line = await mixedLine(t, array, 1, kinds)
  for (let number = 0; number < kinds.length; number++) {
    assert.strictEqual(Atomics.notify(array, 1, 1), 1)
    await line.until(number + 1)
    assert.deepStrictEqual(line.woken(), kinds.slice(0, number + 1).map((_, each) => each))
    assert.strictEqual(api.waiterCount(array, 1), kinds.length - number - 1)
  }
  assert.strictEqual(Atomics.notify(array, 1, 1), 0)
})

test('notify(n) takes the first n of a mixed line', async t => {
  const array = words(1)
  const line = await mixedLine(t, array, 0, ['thread', 'main', 'worker', 'thread', 'worker', 'main', 'thread'])
  assert.strictEqual(Atomics.notify(array, 0, 4), 4)
  await line.until(4)
  assert.deepStrictEqual(line.woken().sort(), [0, 1, 2, 3])
  assert.strictEqual(api.waiterCount(array, 0), 3)
  assert.strictEqual(Atomics.notify(array, 0, 4), 3)
  await line.until(7)
  assert.deepStrictEqual(line.woken().slice(4).sort(), [4, 5, 6])
})

test('a notification from any thread keeps the order', async t => {
  const array = words(1)
  const line = await mixedLine(t, array, 0, ['main', 'worker', 'thread', 'main'])
  for (let number = 0; number < 4; number++) {
    const notifier = startWorker(t, array, ({ Atomics, data }) => Atomics.notify(data, 0, 1))
    assert.strictEqual(await notifier.done(), 1)
    await line.until(number + 1)
    assert.strictEqual(line.woken()[number], number)
  }
})

test('how count is converted', async () => {
  const array = words(1)
  const cases = [
    [undefined, 5], [Infinity, 5], [2 ** 53, 5], [2 ** 64, 5], [1e300, 5], [Number.MAX_VALUE, 5], ['Infinity', 5],
    [2 ** 32, 5], [2 ** 32 + 1, 5], [5, 5], [6, 5], [4, 4], [4.999, 4], ['3', 3], [[2], 2], [true, 1], [1.9, 1],
    [{ valueOf: () => 2 }, 2], [0, 0], [-0, 0], [0.9, 0], [-0.9, 0], [-1, 0], [-Infinity, 0], [-(2 ** 53), 0], [NaN, 0],
    [null, 0], ['', 0], ['x', 0], [false, 0], [[], 0], [{}, 0]
  ]
  for (const [count, expected] of cases) {
    const { all } = lineUp(array, 0, 5)
    const woken = Atomics.notify(array, 0, count)
    assert.strictEqual(woken, expected, `count: ${typeof count} ${String(count)}`)
    assert.strictEqual(api.waiterCount(array, 0), 5 - expected)
    assert.strictEqual(Atomics.notify(array, 0), 5 - expected)
    await all
  }
})

test('0 without waiters, and 0 for an array on an ArrayBuffer', () => {
  const array = words(4)
  for (let index = 0; index < 4; index++) assert.strictEqual(Object.is(Atomics.notify(array, index), 0), true)
  assert.strictEqual(Object.is(Atomics.notify(new Int32Array(4), 3), 0), true)
  assert.strictEqual(Object.is(Atomics.notify(new Int32Array(4), 3, 1), 0), true)
})

test('an array on an ArrayBuffer: 0, BigInt64Array', { skip: NO_BIGINT64 }, () => {
  assert.strictEqual(Atomics.notify(new BigInt64Array(2), 1), 0)
  assert.strictEqual(Atomics.notify(new BigInt64Array(new SharedArrayBuffer(16)), 1), 0)
})

test('a notification reaches its own word among thousands only', async () => {
  const LENGTH = 4000
  const array = words(LENGTH)
  const settled = new Array(LENGTH).fill(false)
  const promises = []
  for (let index = 0; index < LENGTH; index++) {
    promises.push(Atomics.waitAsync(array, index, 0).value.then(() => { settled[index] = true }))
  }
  const random = randomFrom(1)
  const order = settled.map((_, index) => index).sort(() => random() - 0.5)
  const first = order.splice(0, 50)
  for (const index of first) {
    assert.strictEqual(Atomics.notify(array, index, 2), 1)
    await promises[index]
  }
  assert.deepStrictEqual(
    settled.map((is, index) => (is ? index : -1)).filter(index => index >= 0),
    first.sort((a, b) => a - b)
  )
  for (const index of order) assert.strictEqual(Atomics.notify(array, index), 1)
  await Promise.all(promises)
})

test('a waiter that has timed out is not counted, and does not stand in the way', async () => {
  const array = words(1)
  const before = lineUp(array, 0, 3, 5)
  const patient = lineUp(array, 0, 2)
  const after = lineUp(array, 0, 3, 5)
  await Promise.all([before.all, after.all])
  assert.deepStrictEqual(before.outcomes.concat(after.outcomes), new Array(6).fill('timed-out'))
  assert.strictEqual(api.waiterCount(array, 0), 2)
  assert.strictEqual(Atomics.notify(array, 0, 1), 1)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  await patient.all
  assert.deepStrictEqual(patient.outcomes, ['ok', 'ok'])
})

test('a waiter that has been notified is not counted again, although its promise has not settled yet', async () => {
  const array = words(1)
  const { all, outcomes } = lineUp(array, 0, 3)
  assert.strictEqual(Atomics.notify(array, 0, 2), 2)
  assert.strictEqual(Atomics.notify(array, 0, 2), 1)
  assert.strictEqual(Atomics.notify(array, 0, 2), 0)
  assert.strictEqual(outcomes.length, 0)
  await all
  assert.deepStrictEqual(outcomes, ['ok', 'ok', 'ok'])
})

test('a waiter that comes after a notification is not woken by it', async () => {
  const array = words(1)
  const early = lineUp(array, 0, 2)
  assert.strictEqual(Atomics.notify(array, 0), 2)
  const late = lineUp(array, 0, 1)
  await early.all
  assert.strictEqual(api.waiterCount(array, 0), 1)
  assert.strictEqual(late.outcomes.length, 0)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  await late.all
})

test('the rest of count goes to waiters in the host\'s own queue', async t => {
  const array = words(1)
  const hostWaiter = startWorker(t, { array, patience: 20000 }, ({ Atomics, data: { array, patience } }) => {
    // The host's function, whatever has been put in its place.
    const mark = Atomics.wait[Symbol.for('atomics-waitasync')]
    return mark.host.wait(array, 0, 0, patience)
  })
  const ours = lineUp(array, 0, 2)
  // Our own two first: whether the other thread waits already makes no difference to that.
  assert.strictEqual(Atomics.notify(array, 0, 2), 2)
  await ours.all
  let woken = 0
  await until(() => (woken += Atomics.notify(array, 0, 5)) > 0, 'the thread in the host\'s queue is woken')
  assert.strictEqual(woken, 1)
  assert.strictEqual(await hostWaiter.done(), 'ok')
})

test('waiters elsewhere, or behind the one it wakes, do not slow notify down', { timeout: 60000 }, async () => {
  const [crowd, lonely] = [words(1), words(1)]
  const time = (array, times) => {
    const start = now()
    for (let n = 0; n < times; n++) {
      Atomics.waitAsync(array, 0, 0)
      Atomics.notify(array, 0, 1)
    }
    return (now() - start) / times
  }
  const before = []
  const during = []
  const TIMES = 300
  const { all } = lineUp(crowd, 0, 100000)
  for (let round = 0; round < 20; round++) {
    before.push(time(lonely, TIMES))
    during.push(time(crowd, TIMES))
  }
  assert.strictEqual(Atomics.notify(crowd, 0), 100000)
  const best = (times) => Math.min.apply(null, times)
  // A walk over the line would be 10 000 times as slow.
  assert.ok(best(during) < 20 * best(before) + 0.01, `${best(during)} ms instead of ${best(before)} ms`)
  await all
})
