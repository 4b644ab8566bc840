'use strict'
// oldest: installed (there an install puts waitAsync into the global Atomics)

// Atomics.waitAsync: a promise in the line.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { NO_BIGINT64, NO_GROWABLE, linesOf, startWorker, until, words } = require('../fixtures/queue-toolbox')

test('the result is a plain object with async and value', async () => {
  const array = words(1)
  const results = [Atomics.waitAsync(array, 0, 1), Atomics.waitAsync(array, 0, 0, 0), Atomics.waitAsync(array, 0, 0)]
  for (const result of results) {
    const { async, value } = result
    // By deepStrictEqual, an object of the same prototype.
    assert.deepStrictEqual(result, { async, value })
    assert.deepStrictEqual(Object.getOwnPropertyDescriptors(result), Object.getOwnPropertyDescriptors({ async, value }))
  }
  for (const result of results) assert.deepStrictEqual(Reflect.ownKeys(result), ['async', 'value'])
  assert.deepStrictEqual(results[0], { async: false, value: 'not-equal' })
  assert.deepStrictEqual(results[1], { async: false, value: 'timed-out' })
  assert.strictEqual(results[2].async, true)
  assert.strictEqual(Object.getPrototypeOf(results[2].value), Promise.prototype)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await results[2].value, 'ok')
})

test('a notification of the same thread settles the promise, but not while its code runs', async () => {
  const array = words(1)
  let outcome
  Atomics.waitAsync(array, 0, 0).value.then(value => { outcome = value })
  const ended = Atomics.waitAsync(array, 0, 0).value
  assert.strictEqual(Atomics.notify(array, 0), 2)
  assert.strictEqual(outcome, undefined)
  assert.strictEqual(await ended, 'ok')
  assert.strictEqual(outcome, 'ok')
})

test('a notification of another thread settles the promise', async t => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0)
  const notifier = startWorker(t, array, ({ Atomics, data }) => Atomics.notify(data, 0))
  assert.strictEqual(await value, 'ok')
  assert.strictEqual(await notifier.done(), 1)
})

test('a promise of a worker is settled by main', async t => {
  const array = words(1)
  const waiter = startWorker(t, array, ({ Atomics, data }) => Atomics.waitAsync(data, 0, 0).value)
  await until(() => api.waiterCount(array, 0) === 1, 'the worker waits')
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await waiter.done(), 'ok')
})

test('promises of a thread settle in the order they were notified', async () => {
  const array = words(8)
  const order = []
  const all = []
  for (let n = 0; n < 400; n++) all.push(Atomics.waitAsync(array, n % 8, 0).value.then(() => order.push(n)))
  const expected = []
  for (const index of [3, 1, 7, 0, 2, 4, 6, 5]) {
    assert.strictEqual(Atomics.notify(array, index), 50)
    for (let n = index; n < 400; n += 8) expected.push(n)
  }
  await Promise.all(all)
  assert.deepStrictEqual(order, expected)
})

test('100 000 promises on one word are settled by one notification, in order', async () => {
  const array = words(1)
  const COUNT = 100000
  const order = []
  const all = []
  for (let n = 0; n < COUNT; n++)
    all.push(Atomics.waitAsync(array, 0, 0).value.then(outcome => order.push(outcome === 'ok' ? n : -1)))
  assert.strictEqual(api.waiterCount(array, 0), COUNT)
  assert.strictEqual(Atomics.notify(array, 0), COUNT)
  assert.strictEqual(api.waiterCount(array, 0), 0)
  await Promise.all(all)
  for (let n = 0; n < COUNT; n++) if (order[n] !== n) assert.fail(`promise ${order[n]} came at place ${n}`)
})

test('a new wait may begin where a promise is settled', async () => {
  const array = words(1)
  const outcomes = []
  const again = async () => {
    for (let round = 0; round < 200; round++) outcomes.push(await Atomics.waitAsync(array, 0, 0).value)
  }
  const all = Promise.all([again(), again(), again()])
  let woken = 0
  while (woken < 600) {
    woken += Atomics.notify(array, 0, 2)
    await new Promise(resolve => setImmediate(resolve))
  }
  await all
  assert.strictEqual(woken, 600)
  assert.deepStrictEqual(new Set(outcomes), new Set(['ok']))
})

test('each promise settles once, in any mix of outcomes', async () => {
  const array = words(300)
  const expected = []
  const promises = []
  for (let index = 0; index < 300; index++) {
    expected.push(index % 3 === 0 ? 'timed-out' : 'ok')
    promises.push(Atomics.waitAsync(array, index, 0, index % 3 === 0 ? 10 : index % 3 === 1 ? 60000 : undefined).value)
  }
  for (let index = 299; index >= 0; index--) if (index % 3 === 1) assert.strictEqual(Atomics.notify(array, index), 1)
  await promises[0]
  await promises[1]
  for (let index = 0; index < 300; index++) if (index % 3 === 2) assert.strictEqual(Atomics.notify(array, index), 1)
  assert.deepStrictEqual(await Promise.all(promises), expected)
})

test('the expected value is compared when waitAsync is called, not later', async () => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0)
  array[0] = 1
  assert.deepStrictEqual(Atomics.waitAsync(array, 0, 0), { async: false, value: 'not-equal' })
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await value, 'ok')
})

test('a BigInt64Array', { skip: NO_BIGINT64 }, async () => {
  const buffer = new SharedArrayBuffer(64)
  const wide = new BigInt64Array(buffer, 8)
  const narrow = new Int32Array(buffer)
  const value = BigInt(2) ** BigInt(63) - BigInt(1)
  wide[2] = value
  assert.strictEqual(Atomics.waitAsync(wide, 2, value - (BigInt(1) << BigInt(32))).value, 'not-equal')
  const first = Atomics.waitAsync(wide, 2, value + (BigInt(1) << BigInt(64)))
  const second = Atomics.waitAsync(narrow, 6, -1)
  assert.strictEqual(first.async && second.async, true)
  assert.strictEqual(api.waiterCount(wide, 2), 2)
  assert.strictEqual(Atomics.notify(wide, 2, 1), 1)
  assert.strictEqual(await first.value, 'ok')
  assert.strictEqual(Atomics.notify(narrow, 6, 1), 1)
  assert.strictEqual(await second.value, 'ok')
})

test('a SharedArrayBuffer of another realm', async () => {
  const array = vm.runInNewContext('new Int32Array(new SharedArrayBuffer(16), 8)')
  const { value } = Atomics.waitAsync(array, 1, 0)
  assert.strictEqual(Atomics.notify(new Int32Array(array.buffer), 3), 1)
  assert.strictEqual(await value, 'ok')
})

test('a growable SharedArrayBuffer that was empty at first', { skip: NO_GROWABLE }, async () => {
  const buffer = new SharedArrayBuffer(0, { maxByteLength: 65536 })
  const array = new Int32Array(buffer)
  assert.throws(() => Atomics.waitAsync(array, 0, 0), RangeError)
  buffer.grow(4)
  const first = Atomics.waitAsync(array, 0, 0).value
  assert.throws(() => Atomics.waitAsync(array, 1, 0), RangeError)
  buffer.grow(65536)
  const last = Atomics.waitAsync(array, 16383, 0).value
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(Atomics.notify(array, 16383), 1)
  assert.deepStrictEqual(await Promise.all([first, last]), ['ok', 'ok'])
})

test('a pending wait keeps the memory that it waits on, a settled one does not', { timeout: 60000 }, async t => {
  const lines = await linesOf(t, async ({ Atomics, sleep, say }) => {
    const COUNT = 20
    const BYTES = 1 << 20
    const collect = async () => {
      for (let pass = 0; pass < 3; pass++) {
        global.gc()
        // Memory given back would be taken again, and overwritten, here.
        for (let n = 0; n < COUNT; n++) new Int32Array(new SharedArrayBuffer(BYTES)).fill(-1)
        await sleep(1)
      }
    }
    // As long as it takes for the collections to be over before the waits are.
    for (let timeout = 200; ; timeout *= 3) {
      const waits = []
      for (let n = 0; n < COUNT; n++) {
        // Nothing but the wait knows of the buffer from here on.
        const array = new Int32Array(new SharedArrayBuffer(BYTES))
        array.fill(n)
        const reference = typeof WeakRef === 'function' ? new global.WeakRef(array.buffer) : { deref () {} }
        const wait = { settled: false, buffer: reference }
        wait.promise = Atomics.waitAsync(array, BYTES / 4 - 1, n, timeout).value.then(outcome => {
          wait.settled = true
          return outcome
        })
        waits.push(wait)
      }
      await collect()
      const pending = waits.filter(wait => !wait.settled)
      const lost = pending.filter(wait => wait.buffer.deref() === undefined).length
      say(Array.from(new Set(await Promise.all(waits.map(wait => wait.promise)))).join())
      if (pending.length < COUNT) continue
      await collect()
      say(lost)
      say(waits.filter(wait => wait.buffer.deref() !== undefined).length)
      return
    }
  }, undefined, { execArgv: ['--expose-gc'] })
  const [held, lost, ...outcomes] = lines.reverse()
  assert.deepStrictEqual(new Set(outcomes), new Set(['timed-out']))
  if (typeof WeakRef === 'function') assert.strictEqual(lost, '0')
  assert.ok(Number(held) <= 2, `${held} of 20 are still held after they were settled`)
})
