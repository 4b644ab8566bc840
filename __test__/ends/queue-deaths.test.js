'use strict'

// Its threads replace functions of Atomics before they load the package, so nothing may load it in them before.
// subjects: export
// timeout: 300

// A thread that ends at any point of any step of a queue: nothing is lost, nothing comes twice, and whoever waits goes on, though no thread is started
// and no time limit helps.
//
//   node __test__/ends/queue-deaths.test.js [--rounds n]

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { numberArgument, startWorker, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')
const { STEP, atEachPoint, startVictim, watched } = require('../fixtures/victims')

const { Queue } = api

/** How many threads have ended before they were done. */
let ended = 0

const BROKEN = ', broken off by a time limit of vm,'

/** A thread that ends at a point, see fixtures/queue-victim.js. */
async function startQueueVictim (t, queue, way, point, value, awaited) {
  const limit = way.endsWith(BROKEN) ? slowness * 100 : undefined
  const victim = await startVictim(t, 'queue-victim.js', { clone: queue, way: way.replace(BROKEN, ''), value, point, awaited, limit })
  victim.ended.then(() => { if (!victim.isDone) ended++ })
  return victim
}

/** What waits besides the victim, as a promise of this thread or as a blocked thread: `{ isOver, value, ended }`. */
const survivors = {
  promise (t, queue, method, value) {
    return watched(method === 'put' ? queue.putAsync(value) : queue.takeAsync())
  },
  thread (t, queue, method, value) {
    const worker = startWorker(t, ({ api, data: { clone, method, value } }) => {
      const queue = new api.Queue(clone)
      return method === 'put' ? queue.put(value) : queue.take()
    }, { clone: queue, method, value })
    return watched(worker.done())
  }
}

const waiters = (queue, count) => until(() => queue.waiters === count, () => `${count} wait, not ${queue.waiters}`)

/** Waits until the victim waits, and nobody else does; or until it is over. */
const untilAlone = (queue, victim) => until(() => queue.waiters === 1 || victim.isOver, 'the victim waits')

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

/** The putter of 's' gets the one slot, once 'first' has gone: at once, unless the victim `keeps` it, or has ended before it was done. */
async function assertPut (queue, putter, victim, keeps) {
  await until(() => putter.isOver || queue.length === 1, 'the slot is filled')
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

/** What is broken off is tried at more points: fewer of them hit. */
const stepFor = (way) => way.endsWith(BROKEN) ? Math.ceil(STEP / 2) : STEP

/** All of it, so many times. */
const ROUNDS = numberArgument('--rounds', 1)
const KINDS = [].concat(...new Array(ROUNDS).fill(Object.keys(survivors)))

for (const kind of KINDS) {
  const survive = survivors[kind]

  for (const way of ['put', 'putAsync', 'put' + BROKEN]) {
    test(`${way} ends anywhere: a taker, a ${kind}, gets the message if it is in`, t => atEachPoint(1, async point => {
      const queue = Queue.create({ capacity: 2, messageSize: 64 })
      const taker = survive(t, queue, 'take')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point, 'v')
      victim.begin()
      await victim.over()
      await until(() => taker.isOver || queue.length === 0, 'the taker has what is there')
      queue.tryPut('end')
      await taker.ended
      assert.ok(taker.value === 'v' || (taker.value === 'end' && !victim.isDone), taker.value)
      await assertWhole(queue)
      return victim.isDone
    }, stepFor(way)))

    if (way.endsWith(BROKEN)) continue
    test(`${way} that waited and was notified ends anywhere: another putter, a ${kind}, puts`, t => atEachPoint(1, async point => {
      const queue = Queue.create({ capacity: 1, messageSize: 64 })
      queue.tryPut('first')
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
      return victim.isDone
    }))
  }

  for (const way of ['take', 'takeAsync', 'useSync', 'use', 'useSyncFails', 'useFails', ...['take', 'useSync', 'useSyncFails'].map(way => way + BROKEN)]) {
    test(`${way} ends anywhere: a putter, a ${kind}, gets the slot if it is free`, t => atEachPoint(1, async point => {
      const queue = Queue.create({ capacity: 1, messageSize: 64 })
      queue.tryPut('first')
      const putter = survive(t, queue, 'put', 's')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point)
      victim.begin()
      await victim.over()
      const keeps = way.includes('Fails')
      await assertPut(queue, putter, victim, keeps)
      return victim.isDone
    }, stepFor(way)))

    if (way.endsWith(BROKEN)) continue
    test(`${way} that waited and was notified ends anywhere: another taker, a ${kind}, gets what it has not taken`, t => atEachPoint(1, async point => {
      const queue = Queue.create({ capacity: 2, messageSize: 64 })
      const victim = await startQueueVictim(t, queue, way, point)
      victim.begin()
      await untilAlone(queue, victim)
      const alive = queue.waiters
      const taker = survive(t, queue, 'take')
      await waiters(queue, alive + 1)
      queue.tryPut('m')
      if (alive === 1) {
        // The other one may have taken it.
        await Promise.race([victim.over(), taker.ended.then(() => untilAlone(queue, victim))])
      }
      await until(() => taker.isOver || (queue.length === 0 && queue.inUse === 0), 'the taker has what is there')
      if (!taker.isOver) queue.tryPut('end')
      await taker.ended
      assert.ok(taker.value === 'm' || taker.value === 'end', taker.value)
      if (alive === 1 && queue.waiters === 1) queue.tryPut('for the victim')
      if (alive === 1) await victim.over()
      await until(() => queue.waiters === 0, 'nobody waits')
      await assertWhole(queue)
      return victim.isDone
    }))
  }

  for (const way of ['useAndEnd', 'useAsyncAndEnd']) {
    test(`${way}: a taker, a ${kind}, gets the message, at once`, async t => {
      const queue = Queue.create({ capacity: 2, messageSize: 64 })
      queue.tryPut('m')
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

  test(`what a thread owes is given after all that it held: with 100 000 locks between, two takers, a ${kind} each, get two messages`, {
    timeout: 120000
  }, async t => {
    const queue = Queue.create({ capacity: 2, messageSize: 64 })
    queue.tryPut('m')
    queue.tryPut('n')
    const victim = await startQueueVictim(t, queue, 'useWithManyLocksAndEnd', 0, undefined, 2)
    victim.begin()
    await until(() => queue.length === 0, 'both are in use')
    const takers = [survive(t, queue, 'take'), survive(t, queue, 'take')]
    await victim.ended
    for (const taker of takers) await taker.ended
    assert.deepStrictEqual(takers.map(({ value }) => value).sort(), ['m', 'n'])
    await assertWhole(queue)
  })

  for (const way of ['useSync', 'use', 'useSync' + BROKEN]) {
    test(`the end of ${way} ends anywhere: it comes again, or its slot is free for a ${kind}`, t => atEachPoint(-1, async point => {
      const queue = Queue.create({ capacity: 1, messageSize: 64 })
      queue.tryPut('first')
      const putter = survive(t, queue, 'put', 's')
      await waiters(queue, 1)
      const victim = await startQueueVictim(t, queue, way, point)
      victim.begin()
      await victim.over()
      await assertPut(queue, putter, victim, false)
      return victim.isDone
    }, stepFor(way)))
  }

  test(`the last use of a closed queue ends anywhere: two takers, a ${kind} each, are told of the end`, t => atEachPoint(-1, async point => {
    const queue = Queue.create({ capacity: 1, messageSize: 64 })
    queue.tryPut('last')
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
    return victim.isDone
  }))

  test(`close ends anywhere: a taker and a putter, a ${kind} each, go on if it is closed`, t => atEachPoint(1, async point => {
    const [empty, full] = [1, 1].map(() => Queue.create({ capacity: 1, messageSize: 64 }))
    full.tryPut('first')
    const taker = survive(t, empty, 'take')
    const putter = survive(t, full, 'put', 's')
    putter.ended.catch(() => {})
    let isRefused = false
    putter.ended.catch(error => { isRefused = error.code === 'ERR_QUEUE_CLOSED' })
    await Promise.all([waiters(empty, 1), waiters(full, 1)])
    const victims = await Promise.all([startQueueVictim(t, empty, 'close', point), startQueueVictim(t, full, 'close', point)])
    for (const victim of victims) victim.begin()
    await Promise.all(victims.map(victim => victim.over()))
    if (empty.closed) {
      await taker.ended
      assert.strictEqual(taker.value, undefined)
      assert.ok(empty.ended)
    } else {
      empty.close()
      await taker.ended
    }
    if (!full.closed) full.close()
    await until(() => isRefused, 'the putter is refused')
    assert.strictEqual(full.tryTake(), 'first')
    assert.ok(full.ended)
    return victims[0].isDone && victims[1].isDone
  }))
}

test('threads have ended at many points', () => {
  console.log(`# ${ended} threads have ended`)
  assert.ok(ended > 100 * ROUNDS / STEP, `${ended}`)
})
