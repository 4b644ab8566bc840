'use strict'

// Without waiters, locks and permits take no native call: see lib/holding/word.js.

const assert = require('assert')
const { load } = require('../../../lib/agent/load-binding')
const { test } = require('../../harness')

// Before anything else starts the native side, so that every call it will ever be asked for is counted here.
const calls = []
const binding = load()
for (const name of Object.keys(binding)) {
  const original = binding[name]
  if (typeof original !== 'function') continue
  binding[name] = function (...args) {
    calls.push(name)
    const result = original.apply(this, args)
    if (name === 'start') for (const operation of Object.keys(result)) count(result, operation)
    return result
  }
}

function count (operations, name) {
  const original = operations[name]
  operations[name] = () => {
    calls.push(name)
    original()
  }
}

const { api } = require('../../subject')
const { startWorker } = require('../../fixtures/queue-toolbox')
const skip = require('../../fixtures/without-counters')
const { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore } = api

const memory = () => new SharedArrayBuffer(4)

/** By class: what to do it on, and what is done without waiting. */
const operations = {
  AsyncLock: [() => new AsyncLock(memory()), {
    'tryLock and unlock': lock => lock.tryLock().unlock(),
    'lockIfAvailable and unlock': lock => lock.lockIfAvailable(0).unlock(),
    'lockAsync and unlock': async lock => (await lock.lockAsync()).unlock(),
    executeLocked: lock => lock.executeLocked(() => {}),
    'tryLock in vain': lock => {
      const token = lock.tryLock()
      assert.strictEqual(lock.tryLock(), null)
      token.unlock()
    }
  }],
  RwLock: [() => new RwLock(memory()), {
    'tryLock and unlock': lock => lock.tryLock().unlock(),
    'tryLockShared and unlock': lock => lock.tryLockShared().unlock(),
    'lockAsync and unlock': async lock => (await lock.lockAsync()).unlock(),
    'lockSharedAsync and unlock': async lock => (await lock.lockSharedAsync()).unlock(),
    executeLocked: lock => lock.executeLocked(() => {}),
    executeShared: lock => lock.executeShared(() => {}),
    'two readers': lock => {
      const [first, second] = [lock.tryLockShared(), lock.tryLockShared()]
      assert.strictEqual(lock.tryLock(), null)
      first.unlock()
      second.unlock()
    },
    downgrade: lock => lock.tryLock().downgrade().unlock()
  }],
  Semaphore: [() => {
    const semaphore = new Semaphore(memory())
    semaphore.release(5)
    return semaphore
  }, {
    'tryAcquire and release': semaphore => {
      assert.strictEqual(semaphore.tryAcquire(2), true)
      semaphore.release(2)
    },
    'acquireAsync and release': async semaphore => {
      await semaphore.acquireAsync(3)
      semaphore.release(3)
    },
    use: semaphore => semaphore.use(5, () => {}),
    'tryAcquire in vain': semaphore => assert.strictEqual(semaphore.tryAcquire(6), false)
  }],
  Barrier: [() => new Barrier(memory(), { parties: 1 }), { waitAsync: barrier => barrier.waitAsync() }],
  Latch: [() => new Latch(memory(), { count: 3 }), {
    countDown: latch => latch.countDown(),
    'remaining and countDown, the last': latch => latch.countDown(latch.remaining),
    'waitAsync, open': latch => latch.waitAsync()
  }],
  Condition: [() => new Condition(memory()), { notify: condition => assert.strictEqual(condition.notify(), 0) }]
}

test('calls are counted', async () => {
  const lock = new AsyncLock(memory())
  const token = lock.tryLock()
  calls.length = 0
  const next = lock.lockAsync()
  await Promise.resolve()
  token.unlock()
  ;(await next).unlock()
  assert.ok(calls.includes('claimAsync') && calls.length > 1, calls.join())
})

/** These ask first whether the stack has room, since they wake waiters or may have to wait: that concerns no waiter. */
const asks = new Set(['Barrier: waitAsync', 'Latch: remaining and countDown, the last', 'Latch: waitAsync, open'])

for (const name of Object.keys(operations)) {
  test(`${name}: no native call where there is no waiter`, { skip }, async () => {
    const [create, each] = operations[name]
    const it = create()
    // The first one may make room for what is held.
    if (name !== 'Latch') for (const operation of Object.keys(each)) await each[operation](it)
    for (const operation of Object.keys(each)) {
      calls.length = 0
      await each[operation](it)
      assert.deepStrictEqual(calls, asks.has(`${name}: ${operation}`) ? ['depth'] : [], operation)
    }
  })
}

test('where a dead thread has left a lock, only the locks of that bucket call native code', { skip }, async t => {
  const abandoned = memory()
  const dying = startWorker(t, abandoned, ({ api, data }) => {
    new api.AsyncLock(data).lock()
    process.exit()
  })
  await dying.exited
  // Cache lines next to one another are in different buckets, as long as these are enough.
  const page = new SharedArrayBuffer(64 * 64)
  const locks = Array.from({ length: 64 }, (_, line) => new AsyncLock(page, { byteOffset: 64 * line }))
  locks[0].tryLock().unlock()
  calls.length = 0
  for (const lock of locks) lock.tryLock().unlock()
  assert.ok(calls.length <= 1, `${calls}`)
  calls.length = 0
  const heir = new AsyncLock(abandoned).tryLock()
  assert.strictEqual(heir.ownerDied, true)
  assert.ok(calls.includes('takeNoteOfDeath'))
  heir.unlock()
  // Now the death has been reported once, and no more.
  calls.length = 0
  new AsyncLock(abandoned).tryLock().unlock()
  assert.ok(!calls.includes('takeNoteOfDeath'))
})
