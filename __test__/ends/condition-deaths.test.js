'use strict'

// Its threads replace functions of Atomics before they load the package, so nothing may load it in them before.
// subjects: export
// timeout: 300

// A waiter of a Condition that is notified and then fails or ends, at any point until its hold ends in order: another waiter is notified instead,
// though no thread is started and no time limit helps. locks/condition-owed.test.js has the rules in one thread.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const BoundedQueue = require('../fixtures/bounded-queue')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { atEachPoint, startVictim, watched } = require('../fixtures/victims')

const LOCKS = ['AsyncLock', 'RwLock']

/** A value that comes when the other one was taken. */
const END = 9

/** A queue of one value on such a lock. */
const makeQueue = (Lock) => {
  const memory = BoundedQueue.allocate(1)
  return Object.assign(new BoundedQueue(api, memory, Lock), { memory, Lock })
}

/** A thread or a promise of this one that puts 2 or takes, and waits before the victim's notification can reach it. */
const survivors = {
  promise: (t, queue, method) => watched(method === 'put' ? queue.putAsync(2) : queue.takeAsync()),
  thread: (t, { memory, Lock }, method) => watched(startWorker(t, ({ api, require, data: { file, memory, Lock, method } }) => {
    const BoundedQueue = require(file)
    return new BoundedQueue(api, memory, Lock)[method](2)
  }, { file: require.resolve('../fixtures/bounded-queue'), memory, Lock, method }).done())
}

const startQueueVictim = (t, { memory, Lock }, options) =>
  startVictim(t, 'condition-victim.js', Object.assign({ memory, Lock, point: Infinity, step: 'nothing' }, options))

/** Two wait, unless the victim is over before: first it, then the survivor. Returns the survivor. */
async function bothWait (t, queue, condition, victim, survive, method) {
  victim.begin()
  await until(() => condition.waiters === 1 || victim.isOver, 'the victim waits')
  const survivor = survive(t, queue, method)
  // The victim may end as soon as it has joined the line.
  await until(() => condition.waiters === (victim.isOver ? 1 : 2) || survivor.isOver, 'the survivor waits')
  return survivor
}

/** A consumer and another one wait; a value comes, of which one is notified. */
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

/** A producer and another one wait; a place gets free, of which one is notified. */
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

for (const kind of Object.keys(survivors)) {
  const survive = survivors[kind]

  for (const Lock of LOCKS) {
    for (const way of ['take', 'takeAsync']) {
      test(`${Lock}: ${way} ends anywhere after its notification: another consumer, a ${kind}, takes the value`, t => atEachPoint(1, async point => {
        const queue = makeQueue(Lock)
        const victim = await startQueueVictim(t, queue, { way, point })
        const value = await valueComes(t, queue, victim, survive)
        assert.ok(value === END || (value === 1 && !victim.isDone), value)
        return victim.isDone
      }))

      for (const step of ['ends before the change', 'throws before the change', 'overflows the stack before the change',
        'abandons its token before the change']) {
        test(`${Lock}: a ${way} that ${step}: another consumer, a ${kind}, takes the value`, async t => {
          const queue = makeQueue(Lock)
          const victim = await startQueueVictim(t, queue, { way, step })
          assert.strictEqual(await valueComes(t, queue, victim, survive), 1)
        })
      }

      test(`${Lock}: a ${way} that ends after the change: another consumer, a ${kind}, finds nothing and waits on`, async t => {
        const queue = makeQueue(Lock)
        const victim = await startQueueVictim(t, queue, { way, step: 'ends after the change' })
        assert.strictEqual(await valueComes(t, queue, victim, survive), END)
      })
    }

    for (const way of ['put', 'putAsync']) {
      test(`${Lock}: ${way} ends anywhere after its notification: another producer, a ${kind}, gets the place`, t => atEachPoint(1, async point => {
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
}

// ——— before it has the lock again ———

/** What a thread does after a time limit of `vm` has broken it off. */
const WAYS = ['ends', 'waits', 'awaits', 'claims a lock']

for (const way of WAYS) {
  test(`a thread that a time limit breaks off between its notification and the lock, and then ${way}: another waiter is notified`, async t => {
    for (let limit = 200, isHit = false; !isHit; limit *= 4) {
      const queue = makeQueue('AsyncLock')
      const hits = new Int32Array(new SharedArrayBuffer(4))
      const victim = await startVictim(t, 'condition-broken-off.js', { memory: queue.memory, way, hits, limit })
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
  test(`a thread that a time limit breaks off once its wait has ${way}`, async t => {
    const queue = makeQueue('AsyncLock')
    const victim = await startVictim(t, 'condition-broken-off.js', { memory: queue.memory, way, hits: null, limit: 1000 })
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

test('a busy thread that dies with a lock that was granted to it after its notification: another waiter is notified', async t => {
  for (const Lock of LOCKS) {
    const queue = makeQueue(Lock)
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const victim = startWorker(t, async ({ api, require, receive, data: { file, memory, Lock, flag } }) => {
      const BoundedQueue = require(file)
      new BoundedQueue(api, memory, Lock).takeAsync()
      await receive()
      Atomics.store(flag, 0, 1)
      for (;;);
    }, { file: require.resolve('../fixtures/bounded-queue'), memory: queue.memory, Lock, flag })
    await until(() => queue.notEmpty.waiters === 1 && !queue.lock.locked, 'the victim waits')
    const survivor = survivors.promise(t, queue, 'take')
    await until(() => queue.notEmpty.waiters === 2, 'both wait')
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

test('a thread that ends while it is told of the first of two locks, each after a notification: two other waiters are notified, not three', async t => {
  const memory = new SharedArrayBuffer(16)
  const [locks, condition] = [[0, 4].map(byteOffset => new api.AsyncLock(memory, { byteOffset })), new api.Condition(memory, { byteOffset: 8 })]
  const busy = new Int32Array(memory, 12, 1)
  const victim = startWorker(t, async ({ api, receive, data: { memory } }) => {
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
  }, { memory })
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

test('a stolen name beside it: what a dead thread owes goes to another waiter, and the name to who stole it', async t => {
  const queue = makeQueue('AsyncLock')
  const victim = startWorker(t, async ({ api, require, post, data: { file, memory } }) => {
    const BoundedQueue = require(file)
    const queue = new BoundedQueue(api, memory, 'AsyncLock')
    api.locks.request('beside a condition', async () => {
      await queue.lock.executeLocked(async token => {
        await queue.notEmpty.waitAsync(token)
        post('has it')
        await new Promise(() => {})
      })
    }).catch(() => {})
  }, { file: require.resolve('../fixtures/bounded-queue'), memory: queue.memory })
  await until(() => queue.notEmpty.waiters === 1 && !queue.lock.locked, 'the victim waits')
  const survivor = survivors.promise(t, queue, 'take')
  await until(() => queue.notEmpty.waiters === 2, 'both wait')
  await queue.putAsync(1)
  assert.strictEqual(await victim.next(), 'has it')
  await api.locks.request('beside a condition', { steal: true }, async () => {
    await victim.terminate()
    await survivor.ended
    assert.strictEqual(survivor.value, 1)
    assert.strictEqual((await api.locks.query()).held.length, 1)
  })
})

test('what is owed comes after all that the thread held: with 10 000 locks between, and several conditions on one of them', async t => {
  const queue = makeQueue('AsyncLock')
  const victim = startWorker(t, ({ api, require, data: { file, memory } }) => {
    const BoundedQueue = require(file)
    const queue = new BoundedQueue(api, memory, 'AsyncLock')
    queue.onReturned = () => {
      for (let n = 0; n < 10000; n++) new api.AsyncLock().tryLock()
      process.exit(7)
      for (;;);
    }
    queue.take()
  }, { file: require.resolve('../fixtures/bounded-queue'), memory: queue.memory })
  await until(() => queue.notEmpty.waiters === 1 && !queue.lock.locked, 'the victim waits')
  const survivor = survivors.thread(t, queue, 'take')
  await until(() => queue.notEmpty.waiters === 2 && !queue.lock.locked, 'both wait')
  const token = queue.lock.tryLock()
  const beside = watched(queue.notFull.waitAsync(token).then(() => token.unlock()))
  await queue.lock.executeLocked(() => queue.append(1))
  assert.strictEqual(await victim.exited, 7)
  await survivor.ended
  assert.strictEqual(survivor.value, 1)
  // Only the taker has notified this one.
  await beside.ended
})
