'use strict'

// Threads that end before each operation of a Queue. They replace functions of Atomics before they load the package, so
// nothing may load it in them before.
// subjects: export
// timeout: 300

// A thread that ends at any point of any step of a queue: nothing is lost, nothing comes twice, and whoever waits goes
// on, though no thread is started and no time limit helps.
//
//   node __test__/ends/queue-deaths.test.js [--rounds n]

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { numberArgument, until } = require('../fixtures/queue-toolbox')
const { HEAD, MARK, TAIL, slotsBegin, slotWords } = require('../../lib/queue/layout')
const { rejection } = require('../fixtures/lock-toolbox')
const size = require('../fixtures/size')
const slowness = require('../fixtures/slowness')
const { STEP, atEachPoint, startVictim, survivorsOf, withEachKind } = require('../fixtures/victims')

const { Queue } = api

/**
 * Milliseconds until a time limit interrupts a thread at its point. It is there after some few; one that a busy machine
 * holds up is interrupted earlier, at a point that is as good.
 */
const LIMIT = 40

/** How many threads have ended before they were done. */
let ended = 0

const INTERRUPTED = ', interrupted by a time limit of vm,'

/** Starts a thread that ends at a point, see fixtures/queue-victim.js. */
async function startQueueVictim (t, queue, way, point, value, awaited) {
  const limit = way.endsWith(INTERRUPTED) ? slowness * LIMIT : undefined
  const data = { clone: queue, way: way.replace(INTERRUPTED, ''), value, point, awaited, limit }
  const victim = await startVictim(t, 'queue-victim.js', data)
  victim.ended.then(() => { if (!victim.isDone) ended++ })
  return victim
}

const survivors = survivorsOf(({ api }, clone) => new api.Queue(clone), queue => queue)

const waiters = (queue, count) => until(() => queue.waiters === count, () => `${count} wait, not ${queue.waiters}`)

/** Waits until the victim waits, and nobody else does; or until it is over. */
const untilAlone = (queue, victim) => until(() => queue.waiters === 1 || victim.isOver, 'the victim waits')

/**
 * Whether a message is ready, in use or back, or just being taken: not by a property of the queue, which would free the
 * slots of a dead thread.
 */
function isThere ({ buffer, capacity, messageSize }) {
  const words = new Int32Array(buffer)
  const mark = (_, slot) => words[slotsBegin(capacity) + slot * slotWords(messageSize) + MARK]
  return words[HEAD] !== words[TAIL] >>> 1 || Array.from({ length: capacity }, mark).some(mark => mark !== 0)
}

/** Checks that the idler hears that the queue is idle; what the victim has left is taken first. */
async function assertIdle (queue, idler) {
  await until(() => idler.isOver || isThere(queue), 'it is idle, or there is a message')
  if (!idler.isOver) await taken(queue)
  await idler.ended
  await assertWhole(queue)
}

/** Puts the first message back, behind all others. */
const defer = queue => queue.use((_, { putBack }) => putBack({ last: true }))

/** Takes a message that is there. `tryTake` may find another thread inside a step. */
async function taken (queue) {
  let value
  await until(() => {
    value = queue.tryTake()
    return value !== undefined
  }, 'there is a message')
  return value
}

/** Afterwards the queue is as good as new: so many messages go in, and come out. */
async function assertWhole (queue) {
  for (let left = queue.length; left > 0; left--) await taken(queue)
  await until(() => queue.inUse === 0, 'nothing is in use')
  for (let n = 0; n < queue.capacity; n++) await until(() => queue.tryPut(n), `message ${n} is in`)
  assert.strictEqual(queue.tryPut('one more'), false)
  for (let n = 0; n < queue.capacity; n++) assert.strictEqual(await taken(queue), n)
}

/**
 * Checks that the putter of 's' gets the one slot after 'first': at once, unless the victim `keeps` it, or has ended
 * before it was done.
 */
async function assertPut (queue, putter, victim, keeps) {
  const isFilled = () => putter.isOver || queue.length === 1
  await until(() => isFilled() || queue.inUse === 1, 'the slot is filled, or in use')
  // A callback that a time limit has interrupted uses its message until its thread ends.
  if (!isFilled()) await victim.terminate()
  await until(isFilled, 'the slot is filled')
  if (!putter.isOver) {
    const one = await taken(queue)
    assert.ok(one === 'first' ? keeps || !victim.isDone : one === 's', one)
    await putter.ended
    if (one === 'first') assert.strictEqual(await taken(queue), 's')
  } else {
    assert.ok(!keeps)
    assert.strictEqual(await taken(queue), 's')
  }
  await assertWhole(queue)
}

/**
 * Tests victims that use a queue so and end at each point: of the whole, or of the end of the use, if `sign` is -1.
 * Interrupts are tried at more points: few of them hit.
 */
function testEachPoint (test, sign, way, title, scenario) {
  const step = way.endsWith(INTERRUPTED) ? size(1, 2) : STEP
  const attempt = t => atEachPoint(sign, async point => (await scenario(t, point)).isDone, step)
  test(`${sign < 0 ? 'the end of ' : ''}${way} ends anywhere: ${title}`, attempt)
}

/** Makes a queue with these messages. */
function queueOf (capacity, ...messages) {
  const queue = Queue.create({ capacity, messageSize: 64 })
  for (const message of messages) queue.tryPut(message)
  return queue
}

/** All of it, so many times. */
const ROUNDS = numberArgument('--rounds', 1)

function testDeaths (kind, survive, test) {
  const testIdler = (sign, way) => {
    testEachPoint(test, sign, way, `whoever waits until it is idle, a ${kind}, hears of it`, async (t, point) => {
      const queue = queueOf(1, 'first')
      const idler = survive(t, queue, 'idle')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point)
      await victim.run()
      await assertIdle(queue, idler)
      return victim
    })
  }

  for (const way of ['put', 'putAsync', 'put' + INTERRUPTED]) {
    testEachPoint(test, 1, way, `a taker, a ${kind}, gets the message if it is in`, async (t, point) => {
      const queue = queueOf(2)
      const taker = survive(t, queue, 'take')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point, 'v')
      await victim.run()
      await until(() => taker.isOver || queue.length === 0, 'the taker has what is there')
      queue.tryPut('end')
      await taker.ended
      assert.ok(taker.value === 'v' || (taker.value === 'end' && !victim.isDone), taker.value)
      await assertWhole(queue)
      return victim
    })

    if (way.endsWith(INTERRUPTED)) continue
    testEachPoint(test, 1, way, `it waited and was notified; another putter, a ${kind}, puts`, async (t, point) => {
      const queue = queueOf(1, 'first')
      const victim = await startQueueVictim(t, queue, way, point, 'v')
      victim.begin()
      await untilAlone(queue, victim)
      const alive = queue.waiters
      const putter = survive(t, queue, 'put', 's')
      await waiters(queue, alive + 1)
      assert.strictEqual(await taken(queue), 'first')
      // Both are notified, if one is a thread and the other a promise: then the victim may have to wait again.
      if (alive === 1) await Promise.race([victim.over(), putter.ended.then(() => untilAlone(queue, victim))])
      await until(() => putter.isOver || queue.length === 1, 'the slot is filled')
      const got = [await taken(queue)]
      await putter.ended
      if (alive === 1) await victim.over()
      if (queue.length === 1) got.push(await taken(queue))
      assert.ok(got.includes('s'), got)
      assert.ok(got.includes('v') || !victim.isDone, got)
      await assertWhole(queue)
      return victim
    })
  }

  for (const way of ['put', 'putAsync']) {
    const title = `it waited; whoever waits until it is idle, a ${kind}, hears of it`
    testEachPoint(test, 1, way, title, async (t, point) => {
      const queue = queueOf(1, 'first')
      const idler = survive(t, queue, 'idle')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point, 'v')
      victim.begin()
      await until(() => queue.waiters === 2 || victim.isOver, 'the victim waits')
      assert.strictEqual(await taken(queue), 'first')
      await victim.over()
      assert.strictEqual(victim.isDone && idler.isOver, false)
      await assertIdle(queue, idler)
      return victim
    })
  }

  for (const way of ['useSyncLast', 'useLast', 'useSyncFailsLast']) {
    testEachPoint(test, 1, way, `the message comes last, or first again, to a ${kind}`, async (t, point) => {
      const queue = queueOf(3, 'a', 'b', 'c')
      const victim = await startQueueVictim(t, queue, way, point)
      await victim.run()
      await victim.terminate()
      assert.strictEqual(queue.length, 3)
      const got = []
      for (let n = 0; n < 3; n++) {
        const taker = survive(t, queue, 'take')
        await taker.ended
        got.push(taker.value)
      }
      assert.strictEqual(got.join(''), got[0] === 'b' ? 'bca' : 'abc')
      assert.ok(got[0] === 'b' || !victim.isDone)
      await assertWhole(queue)
      return victim
    })
  }

  const uses = ['useSync', 'use', 'useSyncFails', 'useFails', 'useSyncLast', 'useLast']
  const takes = ['take', 'takeInDepth', 'takeMany', 'takeAsync', 'takeManyAsync', ...uses]
  for (const way of [...takes, ...['take', 'useSync', 'useSyncFails'].map(way => way + INTERRUPTED)]) {
    for (const state of ['', ' that was put back last']) {
      const title = `a putter, a ${kind}, gets the slot of a message${state} if it is free`
      testEachPoint(test, 1, way, title, async (t, point) => {
        const queue = queueOf(1, 'first')
        if (state !== '') await defer(queue)
        const putter = survive(t, queue, 'put', 's')
        await waiters(queue, 1)
        const victim = await startQueueVictim(t, queue, way, point)
        await victim.run()
        await assertPut(queue, putter, victim, way.includes('Fails') || way.includes('Last'))
        return victim
      })
    }

    if (way.endsWith(INTERRUPTED)) continue
    testIdler(1, way)

    testEachPoint(test, 1, way, `it waited and was notified; a ${kind} gets what is left`, async (t, point) => {
      const queue = queueOf(2)
      const victim = await startQueueVictim(t, queue, way, point)
      victim.begin()
      await untilAlone(queue, victim)
      const alive = queue.waiters
      const taker = survive(t, queue, 'take')
      await waiters(queue, alive + 1)
      queue.tryPut('m')
      // The other one may have taken it.
      if (alive === 1) await Promise.race([victim.over(), taker.ended.then(() => untilAlone(queue, victim))])
      await until(() => taker.isOver || (queue.length === 0 && queue.inUse === 0), 'the taker has what is there')
      if (!taker.isOver) queue.tryPut('end')
      await taker.ended
      assert.ok(taker.value === 'm' || taker.value === 'end', taker.value)
      if (alive === 1 && queue.waiters === 1) queue.tryPut('for the victim')
      if (alive === 1) await victim.over()
      await until(() => queue.waiters === 0, 'nobody waits')
      await assertWhole(queue)
      return victim
    })
  }

  for (const way of ['takeMany', 'takeManyAsync', 'takeTwo', 'clear', 'clear' + INTERRUPTED]) {
    testEachPoint(test, 1, way, `of several messages, no slot is lost for a ${kind}`, async (t, point) => {
      const queue = queueOf(3, 'a', 'b', 'c')
      await rejection(queue.use(() => { throw new Error('it comes back') }))
      const putter = survive(t, queue, 'put', 's')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point)
      await victim.run()
      await until(() => putter.isOver || queue.length === 3 || queue.inUse > 0, 'the putter goes on if there is room')
      if (queue.inUse > 0 && !putter.isOver) await victim.terminate()
      const got = []
      while (!putter.isOver || queue.length > 0) {
        got.push(await taken(queue))
        await until(() => putter.isOver || queue.length > 0, 'the putter goes on')
      }
      await putter.ended
      assert.strictEqual(got.filter(value => value === 's').length, 1, got)
      assert.deepStrictEqual(got.filter(value => value !== 's'), ['a', 'b', 'c'].filter(value => got.includes(value)))
      assert.ok(!victim.isDone || got.length === (way === 'takeTwo' ? 2 : 1), got)
      await assertWhole(queue)
      return victim
    })
  }

  for (const inUse of [0, 1]) {
    const what = inUse === 0 ? 'a queue' : 'a queue of which a message is in use'
    testEachPoint(test, 1, 'closeAndDiscard', `${what}: takers, a ${kind} each, hear the end`, async (t, point) => {
      const queue = queueOf(3, 'a', 'b', 'c')
      let fail
      const use = inUse === 1 && rejection(queue.use(() => new Promise((resolve, reject) => { fail = reject })))
      const victim = await startQueueVictim(t, queue, 'closeAndDiscard', point)
      await victim.run()
      if (!queue.closed) {
        // It may have said what it was about to do.
        assert.strictEqual(await taken(queue), inUse === 0 ? 'a' : 'b')
        queue.close({ discard: true })
      }
      const takers = [survive(t, queue, 'take'), survive(t, queue, 'take')]
      if (inUse === 1) {
        assert.ok(!queue.ended)
        fail(new Error('on purpose'))
        await use
      }
      for (const taker of takers) {
        await taker.ended
        assert.strictEqual(taker.value, undefined)
      }
      assert.deepStrictEqual([queue.ended, queue.length, queue.inUse], [true, 0, 0])
      return victim
    })
  }

  test(`useAndEnd: a ${kind} that waits until it is idle hears of it, if it discards what comes back`, async t => {
    const queue = queueOf(2, 'm')
    const victim = await startQueueVictim(t, queue, 'useAndEnd', 0, undefined, 1)
    victim.begin()
    await until(() => queue.length === 0, 'it is in use')
    queue.close({ discard: true })
    const idler = survive(t, queue, 'idle')
    await victim.ended
    await idler.ended
    assert.ok(queue.ended)
  })

  for (const way of ['useAndEnd', 'useAsyncAndEnd']) {
    test(`${way}: a taker, a ${kind}, gets the message, at once`, async t => {
      const queue = queueOf(2, 'm')
      const victim = await startQueueVictim(t, queue, way, 0, undefined, 1)
      victim.begin()
      await until(() => queue.length === 0, 'it is in use')
      const taker = survive(t, queue, 'take')
      await victim.ended
      await taker.ended
      assert.strictEqual(taker.value, 'm')
      await assertWhole(queue)
    })
  }

  const after = 'what a thread owes is given after all that it held: with 100 000 locks between'
  test(`${after}, two takers, a ${kind} each, get two messages`, { timeout: 120000 }, async t => {
    const queue = queueOf(2, 'm', 'n')
    const victim = await startQueueVictim(t, queue, 'useWithManyLocksAndEnd', 0, undefined, 2)
    victim.begin()
    await until(() => queue.length === 0, 'both are in use')
    const takers = [survive(t, queue, 'take'), survive(t, queue, 'take')]
    await victim.ended
    for (const taker of takers) await taker.ended
    assert.deepStrictEqual(takers.map(({ value }) => value).sort(), ['m', 'n'])
    await assertWhole(queue)
  })

  for (const way of ['useSync', 'use', 'useSyncLast', 'useLast']) {
    testIdler(-1, way)
  }

  for (const way of ['useSync', 'use', 'useSync' + INTERRUPTED]) {
    testEachPoint(test, -1, way, `it comes again, or its slot is free for a ${kind}`, async (t, point) => {
      const queue = queueOf(1, 'first')
      const putter = survive(t, queue, 'put', 's')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point)
      await victim.run()
      await assertPut(queue, putter, victim, false)
      return victim
    })
  }

  testEachPoint(test, -1, 'the last use of a closed queue', `two takers, each a ${kind}, hear`, async (t, point) => {
    const queue = queueOf(1, 'last')
    const victim = await startQueueVictim(t, queue, 'useSync', point, undefined, 2)
    victim.begin()
    await until(() => queue.length === 0, 'it is in use')
    queue.close()
    const takers = [survive(t, queue, 'take'), survive(t, queue, 'take')]
    await victim.over()
    for (const taker of takers) await taker.ended
    const got = takers.map(({ value }) => value).filter(value => value !== undefined)
    assert.ok(got.length === 0 || (!victim.isDone && got.length === 1 && got[0] === 'last'), got)
    assert.ok(queue.ended)
    return victim
  })

  testEachPoint(test, 1, 'close', `takers and putters, a ${kind} each, go on if it is closed`, async (t, point) => {
    const [empty, full] = [queueOf(1), queueOf(1, 'first')]
    const takers = [1, 2, 3].map(() => survive(t, empty, 'take'))
    const refusals = []
    for (let n = 0; n < 3; n++) survive(t, full, 'put', 's').ended.catch(({ code }) => refusals.push(code))
    await Promise.all([waiters(empty, 3), waiters(full, 3)])
    const victims = await Promise.all([empty, full].map(queue => startQueueVictim(t, queue, 'close', point)))
    await Promise.all(victims.map(victim => victim.run()))
    for (const queue of [empty, full]) if (!queue.closed) queue.close()
    for (const taker of takers) {
      await taker.ended
      assert.strictEqual(taker.value, undefined)
    }
    assert.ok(empty.ended)
    await until(() => refusals.length === 3, () => `three putters are refused, not ${refusals.length}`)
    assert.deepStrictEqual(refusals, Array(3).fill('ERR_QUEUE_CLOSED'))
    assert.strictEqual(full.tryTake(), 'first')
    assert.ok(full.ended)
    return { isDone: victims.every(({ isDone }) => isDone) }
  })
}

for (let round = 0; round < ROUNDS; round++) withEachKind(survivors, testDeaths)

test('threads have ended at many points', () => {
  console.log(`# ${ended} threads have ended`)
  assert.ok(ended > 100 * ROUNDS / STEP, `${ended}`)
})
