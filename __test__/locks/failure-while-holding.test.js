'use strict'

// Failing while holding: who is told that what a lock protects may be half changed, and what is released.

const assert = require('assert')
const vm = require('vm')
const { threadId } = require('worker_threads')
const { test } = require('../harness')
const { api } = require('../subject')
const { TinyController, memory, rejection } = require('../fixtures/lock-toolbox')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')

const { AsyncLock, Condition, RwLock, Semaphore, locks, waiterCount } = api
const fail = () => { throw new Error('on purpose') }

/** Lets a worker die while it holds the name. */
async function dieHolding (t, name) {
  const worker = startWorker(t, name, ({ api, data }) => api.locks.requestSync(data, () => process.exit()))
  worker.done().catch(() => {})
  await worker.exited
}

/** Returns a lock's news for its next holder, which unlocks it. */
function told (lock) {
  const token = lock.tryLock()
  const { ownerDied } = token
  assert.strictEqual(token.unlock(), true)
  return ownerDied
}

const toldOf = (name, mode = 'exclusive') => locks.request(name, { mode }, ({ ownerDied }) => ownerDied)

for (const Class of [AsyncLock, RwLock]) {
  const setUp = () => new Class(memory(4))

  test(`${Class.name}: abandon() releases the lock, and the next holder sees the death, once`, () => {
    const lock = setUp()
    const token = lock.tryLock()
    assert.strictEqual(token.ownerDied, false)
    assert.strictEqual(token.abandon(), true)
    assert.strictEqual(token.locked, false)
    assert.strictEqual(token.abandon(), false)
    assert.strictEqual(token.unlock(), false)
    assert.strictEqual(lock.locked, false)
    assert.deepStrictEqual([told(lock), told(lock)], [true, false])
  })

  test(`${Class.name}: abandon() hands the lock to a promise that waits, which is told`, async () => {
    const lock = setUp()
    const token = lock.tryLock()
    const next = lock.lockAsync()
    assert.strictEqual(token.abandon(), true)
    const heir = await next
    assert.strictEqual(heir.ownerDied, true)
    heir.unlock()
    assert.strictEqual(told(lock), false)
  })

  test(`${Class.name}: a callback that was told and fails tells the next, unless it has unlocked`, async () => {
    const lock = setUp()
    lock.tryLock().abandon()
    for (const callback of [fail, async () => fail()]) {
      assert.strictEqual((await rejection(lock.executeLocked(callback))).message, 'on purpose')
    }
    assert.strictEqual(await lock.executeLocked(async ({ ownerDied }) => ownerDied), true)
    assert.strictEqual(told(lock), false)
    lock.tryLock().abandon()
    await rejection(lock.executeLocked(token => { token.unlock(); fail() }))
    assert.strictEqual(told(lock), false)
  })

  test(`${Class.name}: a blocking callback that was told and fails tells the next`, async t => {
    const lock = setUp()
    lock.tryLock().abandon()
    assert.deepStrictEqual(await startWorker(t, { lock, kind: Class.name }, ({ api, data: { lock, kind } }) => {
      const shared = new api[kind](lock)
      try {
        shared.executeLockedSync(() => { throw new Error('on purpose') })
      } catch (_) {}
      return [0, 1].map(() => shared.executeLockedSync(({ ownerDied }) => ownerDied))
    }).done(), [true, false])
  })

  test(`${Class.name}: while a holder that was told awaits a Condition, others are told, then it again`, async () => {
    const lock = setUp()
    const condition = new Condition(memory(4))
    lock.tryLock().abandon()
    const token = lock.tryLock()
    assert.strictEqual(token.ownerDied, true)
    let wait = condition.waitAsync(token)
    await until(() => condition.waiters === 1, 'it waits')
    const other = lock.tryLock()
    assert.strictEqual(other.ownerDied, true)
    other.abandon()
    condition.notify()
    assert.strictEqual(await wait, true)
    assert.strictEqual(token.ownerDied, true)
    wait = condition.waitAsync(token)
    await until(() => condition.waiters === 1, 'it waits')
    assert.strictEqual(told(lock), true) // it says that it has repaired
    condition.notify()
    await wait
    assert.strictEqual(token.ownerDied, false)
    token.unlock()
    assert.strictEqual(told(lock), false)
  })

  test(`${Class.name}: while a thread that was told blocks for a Condition, others are told`, async t => {
    const lock = setUp()
    const condition = new Condition(memory(4))
    lock.tryLock().abandon()
    const waiting = startWorker(t, [lock, condition, Class.name], ({ api, data: [lock, condition, kind] }) => {
      const token = new api[kind](lock).lock()
      const before = token.ownerDied
      new api.Condition(condition).wait(token)
      const told = [before, token.ownerDied]
      token.unlock()
      return told
    })
    await until(() => condition.waiters === 1, 'it waits')
    // It stands in the Condition's line a moment before it has released the lock.
    const other = await lock.lockAsync()
    assert.strictEqual(other.ownerDied, true)
    other.abandon()
    condition.notify()
    assert.deepStrictEqual(await waiting.done(), [true, true])
    assert.strictEqual(told(lock), false)
  })
}

test('abandon() of a share or of permits is a TypeError, and changes nothing', () => {
  const lock = new RwLock(memory(4))
  const semaphore = new Semaphore(memory(4))
  semaphore.release(1)
  for (const token of [lock.tryLockShared(), semaphore.tryHold()]) {
    assert.throws(() => token.abandon(), error => error instanceof TypeError && error.message.includes('abandon'))
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(token.abandon(), false)
  }
  assert.strictEqual(told(lock), false)
})

// ——— downgrade ———

test('downgrade(): what executeLocked acquired is released at its end, as a reader too', async t => {
  const lock = new RwLock(memory(4))
  await lock.executeLocked(token => { token.downgrade() })
  assert.strictEqual(lock.readers, 0)
  await rejection(lock.executeLocked(async token => { token.downgrade(); fail() }))
  assert.strictEqual(lock.readers, 0)
  await lock.executeLocked(token => { token.downgrade().unlock() })
  assert.strictEqual(lock.readers, 0)
  assert.strictEqual(await startWorker(t, lock, ({ api, data }) => {
    const lock = new api.RwLock(data)
    lock.executeLockedSync(token => { token.downgrade() })
    return lock.readers
  }).done(), 0)
})

test('downgrade() of a writer that was told: its readers and the next writer are told', async () => {
  const lock = new RwLock(memory(4))
  lock.tryLock().abandon()
  const reading = lock.tryLock().downgrade()
  const other = lock.tryLockShared()
  assert.deepStrictEqual([reading.ownerDied, other.ownerDied], [true, true])
  reading.unlock()
  other.unlock()
  assert.deepStrictEqual([told(lock), told(lock)], [true, false])
})

test('downgrade() of a writer that was not told: nobody is told', async () => {
  const lock = new RwLock(memory(4))
  const reading = lock.tryLock().downgrade()
  assert.strictEqual(reading.ownerDied, false)
  reading.unlock()
  assert.strictEqual(told(lock), false)
})

// ——— names ———

test('a name: a callback that fails after it was told leaves the news to the next holder', async t => {
  await dieHolding(t, 'failing')
  for (const callback of [fail, async () => fail()]) {
    assert.strictEqual((await rejection(locks.request('failing', callback))).message, 'on purpose')
  }
  assert.strictEqual(await toldOf('failing', 'shared'), true)
  assert.deepStrictEqual(await startWorker(t, 'failing', ({ api: { locks }, data: name }) => {
    try {
      locks.requestSync(name, () => { throw new Error('on purpose') })
    } catch (_) {}
    return [0, 1].map(() => locks.requestSync(name, ({ ownerDied }) => ownerDied))
  }).done(), [true, false])
})

test('a name: a request that is aborted before its callback begins leaves the news to the next holder', async t => {
  await dieHolding(t, 'aborted')
  const controller = new TinyController({ reason: new Error('aborted') })
  const promise = locks.request('aborted', { signal: controller.signal }, fail)
  controller.abort()
  assert.strictEqual((await rejection(promise)).message, 'aborted')
  assert.deepStrictEqual([await toldOf('aborted'), await toldOf('aborted')], [true, false])
})

test('a name: who steals it from a holder that was told is told', async t => {
  await dieHolding(t, 'stolen')
  let begun
  const hasBegun = new Promise(resolve => { begun = resolve })
  const loser = locks.request('stolen', lock => {
    assert.strictEqual(lock.ownerDied, true)
    begun()
    return new Promise(() => {})
  })
  await hasBegun
  const thief = locks.request('stolen', { steal: true }, lock => lock.ownerDied)
  assert.strictEqual((await rejection(loser)).name, 'AbortError')
  assert.strictEqual(await thief, true)
  assert.strictEqual(await toldOf('stolen'), false)
})

// ——— claims that give up ———

test('a grant with news that comes to a promise which has given up goes to the next with its news', async () => {
  const lock = new AsyncLock(memory(4))
  for (let n = 0; n < 50; n++) {
    const token = lock.tryLock()
    const controller = new TinyController({ reason: new Error('aborted') })
    const first = lock.lockAsync({ signal: controller.signal })
    const second = lock.lockAsync()
    token.abandon()
    controller.abort()
    const heir = await Promise.race([second, first.then(() => assert.fail(), () => second)])
    assert.strictEqual(heir.ownerDied, true)
    heir.unlock()
    assert.strictEqual(waiterCount(lock.i32a, 0), 0)
  }
})

// ——— a time limit ———

test('a time limit of vm within a callback is an error like others', async () => {
  const lock = new AsyncLock(memory(4))
  const error = await rejection(lock.executeLocked(() => vm.runInNewContext('for (;;);', {}, { timeout: 20 })))
  assert.ok(/timed out/.test(error.message))
  assert.strictEqual(lock.locked, false)
})

// ——— a storm ———

test('a storm of names, workers that die, requests that are aborted and steals: every death is reported', async t => {
  const NAMES = 4
  // By name: whether a worker has died with it since an exclusive holder went on.
  const counts = new Int32Array(new SharedArrayBuffer(4 * NAMES))
  const work = ({ api: { locks }, randomFrom, require, data: { counts, seed, names } }) => {
    const { TinyController } = require('./lock-toolbox')
    const random = randomFrom(seed)
    const step = async (left) => {
      if (left === 0) return
      const index = Math.floor(random() * names)
      const dice = random()
      const { abort, signal } = new TinyController()
      const options = dice < 0.4 ? { signal } : dice < 0.5 ? { mode: 'shared' } : {}
      const request = locks.request('storm ' + index, options, (lock) => {
        if (lock.mode === 'shared') {
          if (Atomics.load(counts, index) === 1 && !lock.ownerDied) throw new Error('a reader did not see the death')
          return
        }
        if (Atomics.load(counts, index) === 1 && !lock.ownerDied) throw new Error('a death was not reported')
        if (random() < 0.1) {
          Atomics.store(counts, index, 1)
          if (random() < 0.5) process.exit()
          return new Promise(() => process.exit())
        }
        if (lock.ownerDied && random() < 0.3) throw new RangeError('the repair failed')
        Atomics.store(counts, index, 0)
      })
      if (options.signal !== undefined && random() < 0.7) {
        if (random() < 0.5) abort()
        else setImmediate(abort)
      }
      await request.catch((error) => { if (/not told/.test(error.message)) throw error })
      return step(left - 1)
    }
    return step(60)
  }
  for (let round = 0; round < 6; round++) {
    await Promise.all([1, 2, 3, 4].map(async n => {
      const worker = startWorker(t, { counts, seed: 7919 * round + n, names: NAMES }, work)
      const failure = worker.done().catch(error => error)
      await worker.exited
      const error = await failure
      assert.ok(error === undefined || /ended .* before its function did/.test(error.message), error)
    }))
  }
  for (let index = 0; index < NAMES; index++) {
    assert.strictEqual(await toldOf('storm ' + index), counts[index] === 1)
  }
})

test('a time limit of vm that is over within unlock() leaves a lock that is free, or whose holder is known', () => {
  const lock = new AsyncLock(memory(4))
  const scope = vm.createContext({ lock })
  const script = new vm.Script('for (;;) lock.tryLock().unlock()')
  for (let round = 0; round < size(500, 100); round++) {
    assert.throws(() => script.runInContext(scope, { timeout: 1 }), /timed out/)
    if (!lock.locked) lock.tryLock()
    assert.strictEqual(lock.holder, threadId)
    assert.deepStrictEqual(api.snapshot().held.map(({ kind, threadId }) => [kind, threadId]), [['AsyncLock', threadId]])
    lock.unlock()
  }
})
