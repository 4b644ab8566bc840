'use strict'

// Threads that end before each operation of a Condition. They replace functions of Atomics before they load the
// package, so nothing may load it in them before.
// subjects: export
// timeout: 300

// A waiter of a Condition that is notified and then fails or ends, at any point until its hold ends in order: another
// waiter is notified instead, though no thread is started and no time limit helps. locks/condition-owed.test.js has the
// rules in one thread.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const BoundedQueue = require('../fixtures/bounded-queue')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { atEachPoint, startVictim, survivorsOf, watched, withEachKind } = require('../fixtures/victims')

const LOCKS = ['AsyncLock', 'RwLock']

/** A value that comes when the other one was taken. */
const END = 9

/** Makes a queue of one value on such a lock. */
const makeQueue = (Lock) => {
  const memory = BoundedQueue.allocate(1)
  return Object.assign(new BoundedQueue(api, memory, Lock), { memory, Lock })
}

/** Survivors, which put 2 or take, and wait before the victim's notification can reach them. */
const survivors = survivorsOf(
  ({ api, require }, { memory, Lock }) => new (require('./bounded-queue'))(api, memory, Lock),
  ({ memory, Lock }) => ({ memory, Lock })
)

const startQueueVictim = (t, { memory, Lock }, options) =>
  startVictim(t, 'condition-victim.js', Object.assign({ memory, Lock, point: Infinity, step: 'nothing' }, options))

/** Waits until two wait, unless the victim is over before: first it, then the survivor. Returns the survivor. */
async function bothWait (t, queue, condition, victim, survive, method) {
  victim.begin()
  await until(() => condition.waiters === 1 || victim.isOver, 'the victim waits')
  const survivor = survive(t, queue, method, 2)
  // The victim may end as soon as it has joined the line.
  await until(() => condition.waiters === (victim.isOver ? 1 : 2) || survivor.isOver, 'the survivor waits')
  return survivor
}

/** Lets a consumer and another one wait; a value comes, of which one is notified. */
async function valueComes (t, queue, victim, survive) {
  const survivor = await bothWait(t, queue, queue.notEmpty, victim, survive, 'take')
  await queue.putAsync(1)
  await until(() => survivor.isOver || (victim.isOver && queue.length === 0), 'the value is taken')
  // It may be that the survivor has taken it, and this thread was not told yet.
  if (!survivor.isOver) await queue.putAsync(END)
  await survivor.ended
  await victim.over()
  if (queue.length > 0) assert.strictEqual(await queue.takeAsync(), END)
  return survivor.value
}

/** Lets a producer and another one wait; a place gets free, of which one is notified. */
async function placeComes (t, queue, victim, survive) {
  await queue.putAsync(1)
  const survivor = await bothWait(t, queue, queue.notFull, victim, survive, 'put')
  const values = [await queue.takeAsync()]
  await until(() => victim.isOver && queue.length === 1, 'the place is filled')
  values.push(await queue.takeAsync())
  await survivor.ended
  if (queue.length > 0) values.push(await queue.takeAsync())
  return values
}

const TAKEN = [1, 'takes the value']
/** The value's fate, by the victim's act instead of taking it, or then. */
const STEPS = {
  'ends before the change': TAKEN,
  'throws before the change': TAKEN,
  'overflows the stack before the change': TAKEN,
  'abandons its token before the change': TAKEN,
  'ends after the change': [END, 'finds nothing and waits on']
}

withEachKind(survivors, (kind, survive, test) => {
  for (const Lock of LOCKS) {
    for (const way of ['take', 'takeAsync']) {
      const title = `${Lock}: ${way} ends anywhere after its notification: another consumer, a ${kind}, takes the value`
      test(title, t => atEachPoint(1, async point => {
        const queue = makeQueue(Lock)
        const victim = await startQueueVictim(t, queue, { way, point })
        const value = await valueComes(t, queue, victim, survive)
        assert.ok(value === END || (value === 1 && !victim.isDone), value)
        return victim.isDone
      }))

      for (const step of Object.keys(STEPS)) {
        const [value, what] = STEPS[step]
        test(`${Lock}: a ${way} that ${step}: another consumer, a ${kind}, ${what}`, async t => {
          const queue = makeQueue(Lock)
          const victim = await startQueueVictim(t, queue, { way, step })
          assert.strictEqual(await valueComes(t, queue, victim, survive), value)
        })
      }
    }

    for (const way of ['put', 'putAsync']) {
      const title = `${Lock}: ${way} ends anywhere after its notification: another producer, a ${kind}, gets the place`
      test(title, t => atEachPoint(1, async point => {
        const queue = makeQueue(Lock)
        const victim = await startQueueVictim(t, queue, { way, point })
        const values = await placeComes(t, queue, victim, survive)
        assert.ok(values.includes(2), values)
        assert.ok(values.includes(7) || !victim.isDone, values)
        return victim.isDone
      }))

      test(`${Lock}: a ${way} that throws before the change: another producer, a ${kind}, gets the place`, async t => {
        const queue = makeQueue(Lock)
        const victim = await startQueueVictim(t, queue, { way, step: 'throws before the change' })
        assert.deepStrictEqual(await placeComes(t, queue, victim, survive), [1, 2])
      })
    }
  }
})

// ——— before it has the lock again ———

/** The acts of a thread after a time limit of `vm` has interrupted it. */
const WAYS = ['ends', 'waits', 'awaits', 'claims a lock']

for (const way of WAYS) {
  test(`a thread that a time limit interrupts between notification and lock, which then ${way}`, async t => {
    for (let limit = 200, isHit = false; !isHit; limit *= 4) {
      const queue = makeQueue('AsyncLock')
      const hits = new Int32Array(new SharedArrayBuffer(4))
      const victim = await startVictim(t, 'condition-interrupted.js', { memory: queue.memory, way, hits, limit })
      const survivor = await bothWait(t, queue, queue.notEmpty, victim, survivors.promise, 'take')
      await queue.putAsync(1)
      await survivor.ended
      assert.strictEqual(survivor.value, 1)
      isHit = Atomics.load(hits, 0) === 1
      await victim.terminate()
    }
  })
}

for (const way of ['returned, and ends', 'returned, and unlocks']) {
  test(`a thread that a time limit interrupts once its wait has ${way}`, async t => {
    const queue = makeQueue('AsyncLock')
    const { memory } = queue
    const victim = await startVictim(t, 'condition-interrupted.js', { memory, way, hits: null, limit: 1000 })
    const survivor = await bothWait(t, queue, queue.notEmpty, victim, survivors.promise, 'take')
    await queue.putAsync(1)
    if (way === 'returned, and unlocks') {
      await victim.over()
      // It has unlocked in order: the value is its affair.
      assert.ok(survivor.isOver || queue.notEmpty.waiters === 1)
      queue.notEmpty.notify()
    }
    await survivor.ended
    assert.strictEqual(survivor.value, 1)
  })
}

/** Starts a thread that takes, and one that waits behind it. No value has come yet. */
async function startTaker (t, queue, take, kind = 'promise', data = {}) {
  const { memory, Lock } = queue
  const taker = startWorker(t, Object.assign({ memory, Lock }, data), `scope => {
    const { memory, Lock } = scope.data
    return (${take})(new (scope.require('./bounded-queue'))(scope.api, memory, Lock), scope)
  }`)
  await until(() => queue.notEmpty.waiters === 1 && !queue.lock.locked, 'the victim waits')
  const survivor = survivors[kind](t, queue, 'take')
  await until(() => queue.notEmpty.waiters === 2 && !queue.lock.locked, 'both wait')
  return [taker, survivor]
}

test('a busy thread dies with a lock that was granted after its notification: another waiter is notified', async t => {
  for (const Lock of LOCKS) {
    const queue = makeQueue(Lock)
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const [victim, survivor] = await startTaker(t, queue, async (queue, { receive, data: { flag } }) => {
      queue.takeAsync()
      await receive()
      Atomics.store(flag, 0, 1)
      for (;;);
    }, 'promise', { flag })
    await queue.lock.executeLocked(async () => {
      queue.append(1)
      await until(() => queue.lock.waiters === 1, 'it waits for the lock')
      victim.worker.postMessage('be busy')
      await until(() => flag[0] === 1, 'it is busy')
    })
    await victim.terminate()
    await survivor.ended
    assert.strictEqual(survivor.value, 1)
  }
})

test('a thread ends while it is told of the first of two locks after notifications: two are notified', async t => {
  const memory = new SharedArrayBuffer(16)
  const locks = [0, 4].map(byteOffset => new api.AsyncLock(memory, { byteOffset }))
  const condition = new api.Condition(memory, { byteOffset: 8 })
  const busy = new Int32Array(memory, 12, 1)
  const victim = startWorker(t, { memory }, async ({ api, receive, data: { memory } }) => {
    const condition = new api.Condition(memory, { byteOffset: 8 })
    for (const byteOffset of [0, 4]) {
      const token = new api.AsyncLock(memory, { byteOffset }).tryLock()
      condition.waitAsync(token)
      // Its property is set when the lock is held again.
      const set = () => {
        process.exit(7)
        for (;;);
      }
      Object.defineProperty(token, 'ownerDied', { get: () => false, set })
    }
    const busy = new Int32Array(memory, 12, 1)
    await receive()
    Atomics.store(busy, 0, 1)
    while (Atomics.load(busy, 0) === 1);
  })
  // It is enqueued before its lock is free.
  await until(() => condition.waiters === 2 && locks.every(lock => !lock.locked), 'it waits')
  const lock = new api.AsyncLock()
  const others = [0, 0, 0].map(() => {
    const token = lock.tryLock()
    return watched(condition.waitAsync(token).then(() => token.unlock()))
  })
  const tokens = locks.map(lock => lock.tryLock())
  assert.strictEqual(condition.notify(2), 2)
  await until(() => locks.every(lock => lock.waiters === 1), 'it waits for both locks')
  victim.worker.postMessage('be busy')
  await until(() => Atomics.load(busy, 0) === 1, 'it is busy')
  for (const token of tokens) token.unlock()
  Atomics.store(busy, 0, 2)
  assert.strictEqual(await victim.exited, 7)
  await others[0].ended
  await others[1].ended
  assert.strictEqual(condition.waiters, 1)
  assert.strictEqual(others[2].isOver, false)
  condition.notify()
  await others[2].ended
})

test('a stolen name beside it: what a dead thread owes goes to another waiter, the name to its thief', async t => {
  const queue = makeQueue('AsyncLock')
  const [victim, survivor] = await startTaker(t, queue, (queue, { api, post }) => {
    api.locks.request('beside a condition', () => queue.lock.executeLocked(async token => {
      await queue.notEmpty.waitAsync(token)
      post('has it')
      await new Promise(() => {})
    })).catch(() => {})
  })
  await queue.putAsync(1)
  assert.strictEqual(await victim.next(), 'has it')
  await api.locks.request('beside a condition', { steal: true }, async () => {
    await victim.terminate()
    await survivor.ended
    assert.strictEqual(survivor.value, 1)
    assert.strictEqual((await api.locks.query()).held.length, 1)
  })
})

test('what is owed comes after all that was held: with 10 000 locks between, and two conditions on one', async t => {
  const queue = makeQueue('AsyncLock')
  const [victim, survivor] = await startTaker(t, queue, (queue, { api }) => {
    queue.onReturned = () => {
      for (let n = 0; n < 10000; n++) new api.AsyncLock().tryLock()
      process.exit(7)
      for (;;);
    }
    queue.take()
  }, 'thread')
  const token = queue.lock.tryLock()
  const beside = watched(queue.notFull.waitAsync(token).then(() => token.unlock()))
  await queue.lock.executeLocked(() => queue.append(1))
  assert.strictEqual(await victim.exited, 7)
  await survivor.ended
  assert.strictEqual(survivor.value, 1)
  // Only the taker has notified this one.
  await beside.ended
})
