'use strict'
// oldest: installed (there an install puts waitAsync into the global Atomics)

// Atomics.wait: a thread that blocks. Main blocks here too, as Node allows.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { NO_BIGINT64, NO_GROWABLE, now, startWorker, until, words } = require('../fixtures/queue-toolbox')

/** Blocks a new thread on element `index` of `array`; gives the outcome. */
function waitInThread (t, array, index = 0, timeout = Infinity) {
  return startWorker(t, { array, index, timeout }, ({ Atomics, data: { array, index, timeout } }) => {
    return Atomics.wait(array, index, array[index], timeout)
  })
}

const waiting = (array, index, count) =>
  until(() => api.waiterCount(array, index) === count, `${count} wait at ${index}`)

/** Checks that a notification at another, equal place wakes a thread. */
async function wakes (t, array, index, other = array, at = index) {
  const waiter = waitInThread(t, array, index)
  await waiting(other, at, 1)
  assert.strictEqual(Atomics.notify(other, at), 1)
  assert.strictEqual(await waiter.done(), 'ok')
}

test('a thread that waits is woken by another one: "ok"', async t => {
  const array = words(4)
  await wakes(t, array, 3)
  assert.strictEqual(api.waiterCount(array, 3), 0)
})

test('main, too, blocks and is woken by a worker', async t => {
  const array = words(2)
  const notifier = startWorker(t, array, async ({ Atomics, api, data, until }) => {
    await until(() => api.waiterCount(data, 1) === 1, 'main waits')
    return Atomics.notify(data, 1, 1)
  })
  assert.strictEqual(Atomics.wait(array, 1, 0, 20000), 'ok')
  assert.strictEqual(await notifier.done(), 1)
})

test('another value than the expected one: "not-equal", at once', () => {
  const array = words(1)
  array[0] = 7
  const start = now()
  for (const expected of [0, 8, -7, NaN, undefined, 7.5 + 2 ** 31, '70']) {
    assert.strictEqual(Atomics.wait(array, 0, expected, 20000), 'not-equal', String(expected))
  }
  assert.ok(now() - start < 10000)
})

test('the expected value is converted as ToInt32 does', () => {
  const array = words(1)
  const cases = [
    [
      0,
      [
        0, -0, NaN, undefined, null, '', 'x', 0.9, -0.9, 2 ** 32, 2 ** 53, Infinity, false, [],
        { valueOf: () => 2 ** 32 }
      ]
    ],
    [7, [7.9, '7', 2 ** 32 + 7, -(2 ** 32) + 7, [7]]],
    [-1, [2 ** 32 - 1, -1.5, '-1']],
    [-(2 ** 31), [2 ** 31, -(2 ** 31)]]
  ]
  for (const [value, accepted] of cases) {
    array[0] = value
    for (const each of accepted)
      assert.strictEqual(Atomics.wait(array, 0, each, 0), 'timed-out', `${value}: ${String(each)}`)
  }
})

test('without a timeout, or with one beyond all bounds, a thread waits until it is notified', async t => {
  const array = words(1)
  const timeouts = [undefined, NaN, Infinity, 1e300, 2 ** 53, 2 ** 31, 'x']
  const waiters = timeouts.map(timeout => startWorker(t, { array, timeout }, ({ Atomics, data }) => {
    return Atomics.wait(data.array, 0, 0, data.timeout)
  }))
  await waiting(array, 0, timeouts.length)
  // Longer than a thread blocks in one go, so that each has been back in JavaScript and went on.
  assert.strictEqual(Atomics.wait(array, 0, 0, 100), 'timed-out')
  assert.strictEqual(api.waiterCount(array, 0), timeouts.length)
  assert.strictEqual(Atomics.notify(array, 0), timeouts.length)
  for (const waiter of waiters) assert.strictEqual(await waiter.done(), 'ok')
})

test('a thread that waits can be woken any number of times', async t => {
  const array = words(2)
  const ROUNDS = 2000
  const echo = startWorker(t, { array, ROUNDS }, ({ Atomics, data: { array, ROUNDS } }) => {
    for (let round = 0; round < ROUNDS; round++) {
      while (Atomics.load(array, 0) === round) Atomics.wait(array, 0, round)
      Atomics.add(array, 1, 1)
      Atomics.notify(array, 1)
    }
  })
  for (let round = 0; round < ROUNDS; round++) {
    Atomics.add(array, 0, 1)
    Atomics.notify(array, 0)
    while (Atomics.load(array, 1) === round) assert.notStrictEqual(Atomics.wait(array, 1, round, 20000), 'timed-out')
  }
  await echo.done()
})

test('every word has a line of its own', async t => {
  const LENGTH = 3000 // more than the store has shards
  const array = words(LENGTH)
  const neighbours = [0, 1, 2, LENGTH - 1]
  const waiters = neighbours.map(index => waitInThread(t, array, index))
  for (const index of neighbours) await waiting(array, index, 1)
  for (let index = 3; index < LENGTH - 1; index++) assert.strictEqual(Atomics.notify(array, index), 0)
  for (let place = 0; place < neighbours.length; place++) {
    assert.strictEqual(Atomics.notify(array, neighbours[place]), 1)
    assert.strictEqual(await waiters[place].done(), 'ok')
    for (const later of neighbours.slice(place + 1)) assert.strictEqual(api.waiterCount(array, later), 1)
  }
})

test('two views of the same word are the same place', async t => {
  const buffer = new SharedArrayBuffer(64)
  const whole = new Int32Array(buffer)
  const offset = new Int32Array(buffer, 16, 8)
  const cases = [
    [whole, 5, offset, 1], [offset, 1, whole, 5], [whole.subarray(5), 0, whole, 5],
    [offset.subarray(1, 2), 0, offset, 1]
  ]
  for (const each of cases) await wakes(t, ...each)
})

test('the same index of another buffer is another place', async t => {
  const [one, other] = [words(1), words(1)]
  const waiter = waitInThread(t, one)
  await waiting(one, 0, 1)
  assert.strictEqual(Atomics.notify(other, 0), 0)
  assert.strictEqual(Atomics.notify(one, 0), 1)
  assert.strictEqual(await waiter.done(), 'ok')
})

test('a BigInt64Array: all 64 bits are compared', { skip: NO_BIGINT64 }, () => {
  const array = new BigInt64Array(new SharedArrayBuffer(16))
  const high = BigInt(2) ** BigInt(40)
  array[1] = high
  assert.strictEqual(Atomics.wait(array, 1, BigInt(0), 0), 'not-equal')
  assert.strictEqual(Atomics.wait(array, 1, high + BigInt(1), 0), 'not-equal')
  assert.strictEqual(Atomics.wait(array, 1, high, 0), 'timed-out')
  assert.strictEqual(Atomics.wait(array, 1, high, 5), 'timed-out')
  assert.strictEqual(Atomics.wait(array, 1, BigInt(2) ** BigInt(64) + high, 1), 'timed-out') // ToBigInt64
  assert.strictEqual(Atomics.wait(array, 1, String(high), 1), 'timed-out')
  assert.strictEqual(Atomics.wait(array, 0, false, 1), 'timed-out')
  array[1] = BigInt(-1)
  assert.strictEqual(Atomics.wait(array, 1, BigInt(2) ** BigInt(64) - BigInt(1), 1), 'timed-out')
  assert.strictEqual(Atomics.wait(array, 1, BigInt(2) ** BigInt(32) - BigInt(1), 1), 'not-equal')
})

test('a BigInt64Array: a thread is woken, at an index behind the first', { skip: NO_BIGINT64 }, async t => {
  const array = new BigInt64Array(new SharedArrayBuffer(80), 16)
  array[3] = BigInt(-3)
  const waiter = waitInThread(t, array, 3)
  await waiting(array, 3, 1)
  assert.strictEqual(Atomics.notify(array, 2), 0)
  assert.strictEqual(Atomics.notify(array, 3), 1)
  assert.strictEqual(await waiter.done(), 'ok')
})

test('an Int32Array and a BigInt64Array share the line at an address', { skip: NO_BIGINT64 }, async t => {
  const buffer = new SharedArrayBuffer(64)
  const narrow = new Int32Array(buffer)
  const wide = new BigInt64Array(buffer)
  const first = waitInThread(t, wide, 2)
  await waiting(narrow, 4, 1)
  const second = waitInThread(t, narrow, 4)
  await waiting(wide, 2, 2)
  assert.strictEqual(api.waiterCount(narrow, 5), 0) // the upper half of the wide word is another place
  assert.strictEqual(Atomics.notify(narrow, 4, 1), 1)
  assert.strictEqual(await first.done(), 'ok')
  assert.strictEqual(Atomics.notify(wide, 2, 1), 1)
  assert.strictEqual(await second.done(), 'ok')
})

test('a SharedArrayBuffer of another realm', async t => {
  const array = vm.runInNewContext('new Int32Array(new SharedArrayBuffer(16), 4)')
  assert.ok(!(array instanceof Int32Array))
  assert.strictEqual(Atomics.wait(array, 0, 1, 20000), 'not-equal')
  assert.strictEqual(Atomics.wait(array, 0, 0, 5), 'timed-out')
  await wakes(t, new Int32Array(array.buffer), 1, array, 0) // where the other realm's view begins
})

test('a growable SharedArrayBuffer, also one that was empty at first', { skip: NO_GROWABLE }, async t => {
  for (const bytes of [0, 4, 64]) {
    const buffer = new SharedArrayBuffer(bytes, { maxByteLength: 1 << 20 })
    const tracking = new Int32Array(buffer)
    const fixed = new Int32Array(buffer, 0, bytes / 4)
    const last = (1 << 18) - 1
    assert.throws(() => Atomics.wait(tracking, last, 0, 0), RangeError)
    assert.throws(() => Atomics.notify(tracking, last), RangeError)
    buffer.grow(1 << 20)
    assert.throws(() => Atomics.notify(fixed, bytes / 4), RangeError)
    assert.strictEqual(Atomics.wait(tracking, last, 0, 1), 'timed-out')
    await wakes(t, tracking, last, new Int32Array(buffer, 4 * last, 1), 0)
  }
})

test('a growable SharedArrayBuffer that another thread grows', { skip: NO_GROWABLE }, async t => {
  const buffer = new SharedArrayBuffer(4, { maxByteLength: 4096 })
  const array = new Int32Array(buffer)
  const grower = startWorker(t, buffer, async ({ Atomics, api, data, receive, post }) => {
    const array = new Int32Array(data)
    let early
    try {
      Atomics.notify(array, 1000)
    } catch (error) {
      early = error.name
    }
    data.grow(4096)
    post(early)
    return Atomics.wait(array, 1000, 0)
  })
  assert.throws(() => Atomics.notify(array, 1000), RangeError)
  assert.strictEqual(await grower.next(), 'RangeError')
  await until(() => api.waiterCount(array, 1000) === 1, 'the other thread waits in what it has added')
  assert.strictEqual(Atomics.notify(array, 1000), 1)
  assert.strictEqual(await grower.done(), 'ok')
})
