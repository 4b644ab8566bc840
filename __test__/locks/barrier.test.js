'use strict'

// Barrier: parties that wait for each other. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { randomFrom, sleep, startWorker, until } = require('../fixtures/queue-toolbox')

const { Barrier } = api
const MOST = 0xffff

function setUp (parties) {
  const sab = new SharedArrayBuffer(4)
  const on = (member) => member.on('Barrier', 0, { parties })
  return { sab, barrier: new Barrier(sab, { parties }), word: new Int32Array(sab), on }
}

const leaders = (results) => results.filter(({ leader }) => leader).length

test('no party goes on before all have arrived, then all do, and one is the leader: threads and main', async t => {
  const { sab, barrier, on } = setUp(4)
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  for (let generation = 0; generation < 3; generation++) {
    const parties = [watch(on(members[0])('wait'))]
    await untilWaiters(sab, 0, 1)
    parties.push(watch(barrier.waitAsync()))
    parties.push(watch(on(members[1])('waitAsync')))
    await untilWaiters(sab, 0, 3)
    await turns()
    assert.ok(parties.every(({ state }) => state === 'pending'))
    parties.push(watch(barrier.waitAsync()))
    await until(() => parties.every(({ state }) => state === 'fulfilled'))
    assert.deepStrictEqual(parties.map(({ value }) => value.leader), [false, false, false, true])
    assert.strictEqual(waiters(sab), 0)
  }
})

test('the last to arrive is the leader, also if it blocks', async t => {
  const { sab, barrier, on } = setUp(2)
  const member = await startMember(t, sab)
  for (const form of ['wait', 'waitAsync']) {
    const mine = barrier.waitAsync()
    assert.deepStrictEqual(await on(member)(form), { leader: true })
    assert.deepStrictEqual(await mine, { leader: false })
    const theirs = on(member)(form, { timeout: 1e6 })
    await untilWaiters(sab, 0, 1)
    assert.deepStrictEqual([await barrier.waitAsync(), await theirs], [{ leader: true }, { leader: false }])
  }
})

test('a single party never waits, and always leads', async t => {
  const { sab, barrier, on } = setUp(1)
  const member = await startMember(t, sab)
  for (let n = 0; n < 3; n++) {
    assert.deepStrictEqual(await barrier.waitAsync({ timeout: 0 }), { leader: true })
    assert.deepStrictEqual(await on(member)('wait', { timeout: 0 }), { leader: true })
  }
})

test('one thread may be several parties', async () => {
  const { barrier } = setUp(50)
  for (let n = 0; n < 3; n++) {
    const results = await Promise.all(Array.from({ length: 50 }, () => barrier.waitAsync()))
    assert.strictEqual(leaders(results), 1)
  }
})

test('as many parties as the word can count', { timeout: 60000 }, async () => {
  const { barrier, sab } = setUp(MOST)
  for (let n = 0; n < 2; n++) {
    const all = []
    for (let party = 1; party < MOST; party++) all.push(barrier.waitAsync())
    await turns(2)
    assert.strictEqual(waiters(sab), MOST - 1)
    all.push(barrier.waitAsync())
    assert.strictEqual(leaders(await Promise.all(all)), 1)
  }
})

test('the number of generations wraps around', async t => {
  const { sab, barrier, on, word } = setUp(3)
  const member = await startMember(t, sab)
  Atomics.store(word, 0, (0xffff << 16) | 0) // the last generation
  for (let n = 0; n < 3; n++) {
    const blocked = on(member)('wait')
    await untilWaiters(sab, 0, 1)
    const results = Promise.all([blocked, barrier.waitAsync(), barrier.waitAsync()])
    assert.strictEqual(leaders(await results), 1)
    assert.strictEqual(word[0] >>> 16, n)
    assert.strictEqual(word[0] & 0xffff, 0)
  }
})

test('every generation up to the wrap-around and beyond', { timeout: 60000 }, async () => {
  const { barrier, word } = setUp(1)
  let led = 0
  for (let n = 0; n < 70000; n++) {
    const result = barrier.waitAsync()
    if (n % 1000 === 0) led += (await result).leader ? 1 : 0
    assert.strictEqual(word[0] >>> 16, (n + 1) & 0xffff)
  }
  assert.strictEqual(led, 70)
})

// ——— giving up ———

test('a party that gives up is no longer counted: the others still wait for all', async t => {
  const { sab, barrier, on, word } = setUp(3)
  const member = await startMember(t, sab)
  const controller = new TinyController({ reason: 'abort' })
  const waiting = watch(barrier.waitAsync())
  // One after the other: together with the one that waits, two of them would be all.
  for (const [form, timeout] of [['wait', 20], ['waitAsync', 0]]) {
    assert.strictEqual((await rejection(on(member)(form, { timeout }))).name, 'TimeoutError')
  }
  assert.strictEqual((await rejection(barrier.waitAsync({ timeout: 0 }))).name, 'TimeoutError')
  const aborted = rejection(barrier.waitAsync({ signal: controller.signal }))
  controller.abort()
  assert.strictEqual(await aborted, 'abort')
  await turns()
  assert.strictEqual(word[0] & 0xffff, 1)
  assert.strictEqual(waiting.state, 'pending')
  const blocked = on(member)('wait')
  await untilWaiters(sab, 0, 2)
  assert.deepStrictEqual(await barrier.waitAsync(), { leader: true })
  assert.deepStrictEqual(await blocked, { leader: false })
  await until(() => waiting.state === 'fulfilled')
})

test('an aborted party leaves at the abort: one that comes in the same turn does not meet it', async () => {
  const { barrier, word } = setUp(2)
  const controller = new TinyController({ reason: 'abort' })
  const aborted = rejection(barrier.waitAsync({ signal: controller.signal }))
  controller.abort()
  assert.strictEqual(word[0] & 0xffff, 0)
  const next = watch(barrier.waitAsync())
  assert.strictEqual(await aborted, 'abort')
  await turns()
  assert.strictEqual(next.state, 'pending')
  assert.deepStrictEqual(await barrier.waitAsync(), { leader: true })
  await until(() => next.state === 'fulfilled')
})

test('an aborted party leaves although it has been woken for nothing', async () => {
  const { barrier, word } = setUp(2)
  const controller = new TinyController({ reason: 'abort' })
  const aborted = rejection(barrier.waitAsync({ signal: controller.signal }))
  assert.strictEqual(api.notify(word, 0), 1)
  controller.abort()
  assert.strictEqual(word[0] & 0xffff, 0)
  const next = barrier.waitAsync()
  assert.deepStrictEqual(await barrier.waitAsync(), { leader: true })
  assert.strictEqual(await aborted, 'abort')
  assert.deepStrictEqual(await next, { leader: false })
})

test('a party is counted out once, also if the reason of the abort throws undefined', async () => {
  const { barrier, word } = setUp(3)
  let abort
  const signal = { aborted: false, addEventListener: (_, listener) => { abort = listener } }
  Object.defineProperty(signal, 'reason', { get () { throw undefined } }) // eslint-disable-line no-throw-literal
  const aborted = rejection(barrier.waitAsync({ signal }))
  const others = [barrier.waitAsync()]
  abort()
  await aborted
  assert.strictEqual(word[0] & 0xffff, 1)
  others.push(barrier.waitAsync(), barrier.waitAsync())
  assert.strictEqual(leaders(await Promise.all(others)), 1)
})

test('an abort after the last party has come is too late', async () => {
  const { barrier } = setUp(2)
  const controller = new TinyController({ reason: 'abort' })
  const party = barrier.waitAsync({ signal: controller.signal })
  const last = barrier.waitAsync()
  controller.abort()
  assert.deepStrictEqual(await Promise.all([party, last]), [{ leader: false }, { leader: true }])
  assert.strictEqual(controller.listeners.size, 0)
})

test('a party whose signal is aborted while it is listened to does not arrive', async () => {
  const { barrier, word } = setUp(2)
  const signal = { aborted: false, reason: 'abort', addEventListener: (_, listener) => { listener() } }
  assert.strictEqual(await rejection(barrier.waitAsync({ signal })), 'abort')
  assert.strictEqual(word[0], 0)
})

test('a party that gives up as the last one arrives goes on with the others', async () => {
  const { barrier, word } = setUp(2)
  const controller = new TinyController({ reason: 'abort' })
  const first = barrier.waitAsync({ signal: controller.signal, timeout: 10 })
  const second = barrier.waitAsync()
  // Its generation is over, and its loop has not turned since.
  controller.abort()
  assert.deepStrictEqual(await first, { leader: false })
  assert.deepStrictEqual(await second, { leader: true })
  assert.deepStrictEqual([word[0] >>> 16, word[0] & 0xffff], [1, 0])
})

test('parties that give up and return: a generation has one leader, the same for all', { timeout: 60000 }, async t => {
  const seed = 14
  const PARTIES = 4
  const { sab, barrier, word } = setUp(PARTIES)
  const random = randomFrom(seed)
  const done = new Int32Array(new SharedArrayBuffer(4 * (PARTIES + 1))) // by party, how many generations; leaders
  const party = async ({ api, randomFrom, data: { sab, done, parties, me, seed, rounds, awaits } }) => {
    const random = randomFrom(seed)
    const barrier = new api.Barrier(sab, { parties })
    let gaveUp = 0
    for (let n = 0; n < rounds;) {
      const options = random() < 0.5 ? { timeout: random() * 2 } : undefined
      let result
      try {
        result = awaits ? await barrier.waitAsync(options) : barrier.wait(options)
      } catch (error) {
        if (error.name !== 'TimeoutError') throw error
        gaveUp++
        continue
      }
      n++
      Atomics.store(done, me, n)
      if (result.leader) Atomics.add(done, parties, 1)
      // No party can be more than one generation before or behind.
      for (let other = 0; other < parties; other++) {
        const theirs = Atomics.load(done, other)
        if (Math.abs(theirs - n) > 1) throw new Error(`party ${me}: ${n}, party ${other}: ${theirs}, seed ${seed}`)
      }
    }
    return gaveUp
  }
  const data = (me, awaits) => ({ sab, done, parties: PARTIES, me, seed: seed + me, rounds: 150, awaits })
  const workers = [0, 1].map(me => startWorker(t, data(me, me === 1), party))
  let aborted = 0
  const mine = async (me) => {
    for (let n = 0; n < 150;) {
      const controller = new TinyController({ reason: 'abort' })
      const result = barrier.waitAsync({ signal: controller.signal })
      if (random() < 0.3) setTimeout(controller.abort, random() * 2)
      try {
        if ((await result).leader) Atomics.add(done, PARTIES, 1)
      } catch (reason) {
        assert.strictEqual(reason, 'abort')
        aborted++
        continue
      }
      Atomics.store(done, me, ++n)
      if (random() < 0.1) await sleep(1)
    }
  }
  const gaveUp = await Promise.all([...workers.map(worker => worker.done()), mine(2), mine(3)])
  assert.deepStrictEqual(Array.from(done), [150, 150, 150, 150, 150], `seed ${seed}`)
  assert.deepStrictEqual([word[0] >>> 16, word[0] & 0xffff, waiters(sab)], [150, 0, 0])
  assert.ok(aborted + gaveUp[0] + gaveUp[1] > 0)
})

// ——— a thread that dies ———

// As documented: it has arrived, so it stays counted. The generation that it died in is completed, the next one is not.
test('a thread that dies while it waits stays counted in its generation', async t => {
  for (const form of ['wait', 'waitAsync']) {
    const { sab, barrier, on, word } = setUp(3)
    const victim = await startMember(t, sab)
    on(victim)(form)
    await untilWaiters(sab, 0, 1)
    await victim.terminate()
    assert.strictEqual(waiters(sab), 0)
    assert.strictEqual(word[0] & 0xffff, 1)
    assert.strictEqual(leaders(await Promise.all([barrier.waitAsync(), barrier.waitAsync()])), 1)
    assert.strictEqual(word[0] >>> 16, 1)
    // The others find out by a timeout.
    const next = await Promise.all([0, 1].map(() => rejection(barrier.waitAsync({ timeout: 5 }))))
    assert.ok(next.every(({ name }) => name === 'TimeoutError'))
    assert.strictEqual(word[0] & 0xffff, 0)
  }
})

test('the death of a waiting thread does not wake the others', async t => {
  const { sab, barrier, on } = setUp(4)
  const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  const parties = [watch(barrier.waitAsync()), watch(on(member)('wait'))]
  await untilWaiters(sab, 0, 2)
  on(victim)('wait')
  await untilWaiters(sab, 0, 3)
  await victim.terminate()
  await turns()
  assert.ok(parties.every(({ state }) => state === 'pending'))
  assert.deepStrictEqual(await barrier.waitAsync(), { leader: true })
  await until(() => parties.every(({ state }) => state === 'fulfilled'))
})

// ——— work in phases ———
