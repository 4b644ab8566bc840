'use strict'

// Latch: waiting until something has happened so many times. every-class/forms.test.js tests the behaviour that all
// classes share.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { randomFrom, startWorker, until } = require('../fixtures/queue-toolbox')

const { Latch } = api
const MOST = 0x7fffffff

function setUp (count) {
  const sab = new SharedArrayBuffer(4)
  const on = (member) => member.on('Latch', 0, { count })
  return { sab, latch: new Latch(sab, { count }), word: new Int32Array(sab), on }
}

test('zero-filled memory is a closed latch, which opens once counted down, for all threads and for good', async t => {
  const { sab, latch, on } = setUp(4)
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const [first, second] = members.map(on)
  const all = [first('wait'), second('waitAsync'), latch.waitAsync(), latch.waitAsync({ timeout: 1e6 })].map(watch)
  await untilWaiters(sab, 0, 4)
  assert.strictEqual(latch.remaining, 4)
  assert.strictEqual(latch.countDown(), undefined)
  assert.strictEqual(latch.remaining, 3)
  latch.countDown(2)
  assert.strictEqual(latch.remaining, 1)
  await turns()
  assert.ok(all.every(({ state }) => state === 'pending'))
  latch.countDown()
  assert.strictEqual(latch.remaining, 0)
  await until(() => all.every(({ state }) => state === 'fulfilled'))
  assert.ok(all.every(({ value }) => value === undefined))
  for (const options of [undefined, { timeout: 0 }]) {
    assert.strictEqual(await latch.waitAsync(options), undefined)
    assert.strictEqual(await on(members[0])('wait', options), undefined)
  }
  assert.strictEqual(waiters(sab), 0)
})

test('counting down further than there is changes nothing', async () => {
  const { sab, latch, word } = setUp(3)
  const waiting = latch.waitAsync()
  latch.countDown(MOST)
  await waiting
  assert.deepStrictEqual([latch.remaining, word[0]], [0, 3])
  latch.countDown()
  latch.countDown(MOST)
  assert.deepStrictEqual([latch.remaining, word[0]], [0, 3])
  assert.strictEqual(waiters(sab), 0)
})

test('a count of 0 is open from the beginning', async t => {
  const { sab, latch, on, word } = setUp(0)
  const member = await startMember(t, sab)
  assert.strictEqual(latch.remaining, 0)
  await latch.waitAsync()
  await on(member)('wait', { timeout: 0 })
  latch.countDown()
  assert.strictEqual(word[0], 0)
})

test('the last countDown, in any thread, wakes all waiters, in any thread', async t => {
  const { sab, latch, on } = setUp(2)
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const blocked = on(members[0])('wait')
  const awaited = latch.waitAsync()
  await untilWaiters(sab, 0, 2)
  await on(members[1])('countDown')
  await on(members[1])('countDown')
  await Promise.all([blocked, awaited])
})

test('zeroing its word makes it a new one', async () => {
  const { latch, word } = setUp(1)
  for (let n = 0; n < 3; n++) {
    const waiting = watch(latch.waitAsync())
    await turns()
    assert.strictEqual(waiting.state, 'pending')
    latch.countDown()
    await until(() => waiting.state === 'fulfilled')
    Atomics.store(word, 0, 0)
  }
})

test('a waiter that gives up as the latch opens is let through or rejects; the others are let through', async () => {
  const { sab, latch } = setUp(1)
  const controller = new TinyController({ reason: 'abort' })
  const first = latch.waitAsync({ signal: controller.signal })
  const second = latch.waitAsync()
  latch.countDown()
  controller.abort()
  assert.strictEqual(await first, undefined)
  assert.strictEqual(await second, undefined)
  assert.strictEqual(waiters(sab), 0)
})

test('no opening is missed: threads that come while others count down', { timeout: 60000 }, async t => {
  const ROUNDS = 200
  const random = randomFrom(6)
  const sab = new SharedArrayBuffer(4 * ROUNDS)
  const work = async ({ api, data: { sab, rounds, awaits } }) => {
    for (let n = 0; n < rounds; n++) {
      const latch = new api.Latch(sab, { count: 3, byteOffset: 4 * n })
      latch.countDown()
      if (awaits) await latch.waitAsync()
      else latch.wait()
      if (latch.remaining !== 0) throw new Error(`latch ${n} has let somebody through too early`)
    }
    return 'through'
  }
  const workers = [false, true].map(awaits => startWorker(t, { sab, rounds: ROUNDS, awaits }, work))
  for (let n = 0; n < ROUNDS; n++) {
    const latch = new Latch(sab, { count: 3, byteOffset: 4 * n })
    if (random() < 0.3) await turns(1)
    latch.countDown()
    await latch.waitAsync()
    assert.strictEqual(latch.remaining, 0)
  }
  for (const worker of workers) assert.strictEqual(await worker.done(), 'through')
})

test('counting down at the same time: none is lost', async t => {
  const COUNT = 30000
  const { sab, latch, word } = setUp(COUNT)
  const workers = [0, 1, 2].map(() => startWorker(t, { sab, count: COUNT }, ({ api, data: { sab, count } }) => {
    const latch = new api.Latch(sab, { count })
    for (let n = 0; n < count / 3 - 1; n++) latch.countDown()
  }))
  const waiting = watch(latch.waitAsync())
  for (const worker of workers) await worker.done()
  assert.strictEqual(latch.remaining, 3)
  await turns()
  assert.strictEqual(waiting.state, 'pending')
  latch.countDown(3)
  await until(() => waiting.state === 'fulfilled')
  assert.strictEqual(word[0], COUNT)
})

test('the counts of a dead thread stay, and its waits are gone', async t => {
  const { sab, latch, on } = setUp(2)
  const victim = await startMember(t, sab)
  await on(victim)('countDown')
  const mine = watch(latch.waitAsync())
  on(victim)('wait')
  await untilWaiters(sab, 0, 2)
  await victim.terminate()
  assert.deepStrictEqual([latch.remaining, waiters(sab)], [1, 1])
  await turns()
  assert.strictEqual(mine.state, 'pending')
  assert.strictEqual((await rejection(latch.waitAsync({ timeout: 3 }))).name, 'TimeoutError')
  latch.countDown()
  await until(() => mine.state === 'fulfilled')
})
