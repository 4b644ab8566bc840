'use strict'

// A lock with a claim of a busy thread in its line: who is delayed, and who may unlock the lock on its way there.

const assert = require('assert')
const util = require('util')
const { threadId } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { AsyncLock } = api
const { memory, newLock, startLocker, untilWaiters } = require('../fixtures/lock-toolbox')
const { busy, now, sleep } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

/** Milliseconds, far more than a claim needs that nothing delays. */
const LONG = slowness * 5000

/** Computes until `condition()`, and gives for how many milliseconds. */
function computeUntil (condition, what) {
  const start = now()
  while (!condition()) assert.ok(now() - start < LONG, `not while main computes: ${what}`)
  return now() - start
}

/** Lets the first claim, of this thread's promise, try in vain: the next release then hands the lock over to it. */
async function tryInVain (lock) {
  Atomics.notify(lock.i32a, 0, 1)
  await sleep(20)
}

for (const operation of ['lockAndTell', 'lockBareAndTell']) {
  const who = operation === 'lockAndTell' ? 'a blocked thread' : 'a thread that blocks on the bare word'
  test(`${who} has the lock while a promise before it is one of a busy thread`, async t => {
    const lock = newLock()
    const locker = await startLocker(t, lock.sab)
    const token = lock.tryLock()
    const promise = lock.lockAsync()
    const result = locker.call(operation, 0, 1)
    await untilWaiters(lock, 2)
    token.unlock()
    computeUntil(() => locker.isSet(1), `${who} has the lock`)
    await result
    ;(await promise).unlock()
    assert.strictEqual(lock.locked, false)
  })
}

test('several blocked threads have the lock in turn while a promise before them is one of a busy thread', async t => {
  const lock = newLock()
  const lockers = await Promise.all([1, 2, 3].map(() => startLocker(t, lock.sab)))
  const token = lock.tryLock()
  const promises = [lock.lockAsync(), lock.lockAsync()]
  const results = lockers.map(locker => locker.call('lockAndTell', 0, 1))
  await untilWaiters(lock, 5)
  token.unlock()
  computeUntil(() => lockers.every(locker => locker.isSet(1)), 'all of them have the lock')
  await Promise.all(results)
  for (const promise of promises) (await promise).unlock()
  assert.strictEqual(lock.locked, false)
})

test('the time alone does not give a lock to a busy thread: other threads go on with it', async t => {
  const lock = newLock()
  const lockers = await Promise.all([1, 2].map(() => startLocker(t, lock.sab)))
  const token = lock.tryLock()
  const promise = lock.lockAsync()
  const results = lockers.map(locker => locker.call('lockAndCount', 0, 1, 2))
  await untilWaiters(lock, 3)
  token.unlock()
  const counted = () => lockers.reduce((sum, { flags }) => sum + Atomics.load(flags, 2), 0)
  for (let n = 0; n < 20; n++) {
    busy(5)
    const before = counted()
    computeUntil(() => counted() > before, 'the others go on')
  }
  // No thread that can run is kept out.
  const next = await promise
  next.unlock()
  lockers.forEach(locker => locker.set(1))
  await Promise.all(results)
})

test('main is served in between when others take the lock in turns', async t => {
  const lock = newLock()
  const lockers = await Promise.all([1, 2].map(() => startLocker(t, lock.sab)))
  const results = lockers.map(locker => locker.call('lockAndCount', 0, 1, 2))
  for (let n = 0; n < 200; n++) {
    await lock.executeLocked(() => {})
    if (n % 10 === 0) await sleep(1)
  }
  lockers.forEach(locker => locker.set(1))
  await Promise.all(results)
  assert.strictEqual(lock.locked, false)
})

test('a blocked thread inherits the lock of a dead one while a promise before it is one of a busy thread', async t => {
  const lock = newLock()
  const [victim, heir] = await Promise.all([1, 2].map(() => startLocker(t, lock.sab)))
  await victim.call('lock', 0)
  const promise = lock.lockAsync()
  const result = heir.call('lockAndTell', 0, 1)
  await untilWaiters(lock, 2)
  victim.terminate()
  computeUntil(() => heir.isSet(1), 'the lock is inherited')
  assert.strictEqual(await result, true)
  const token = await promise
  assert.strictEqual(token.ownerDied, false)
  token.unlock()
})

test('unlock() by mistake, while the lock is on its way to a promise of a busy thread, is refused', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  const promise = lock.lockAsync()
  await tryInVain(lock)
  const refusal = locker.call('unlockTwice', 0, 1)
  computeUntil(() => Atomics.load(locker.flags, 1) !== 0, 'it has been unlocked twice')
  assert.strictEqual(lock.locked, true, 'it has been freed')
  assert.strictEqual(lock.tryLock(), null, 'two have it')
  assert.ok(util.inspect(lock).includes(`holder: 'thread ${threadId}'`), util.inspect(lock))
  const message = /a promise of this thread that has not settled yet/
  assert.throws(() => lock.unlock(), { code: 'ERR_NOT_LOCKED', message })
  const token = await promise
  assert.strictEqual(await refusal, `unlock: the lock is held by thread ${threadId}, not by this one`)
  assert.strictEqual(token.locked, true)
  token.unlock()
  assert.strictEqual(lock.locked, false)
})

test('a lock that was on its way to a promise which gave up can be freed as any other', async t => {
  const lock = newLock()
  const controller = { aborted: false, addEventListener (_, listener) { this.abort = listener } }
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  const promise = lock.lockAsync({ signal: controller })
  promise.catch(() => {})
  await tryInVain(lock)
  locker.call('unlockTwice', 0, 1)
  computeUntil(() => Atomics.load(locker.flags, 1) !== 0, 'it is on its way')
  controller.aborted = true
  controller.abort()
  assert.strictEqual(lock.locked, false)
  Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
  lock.unlock()
  assert.strictEqual(lock.locked, false)
})

test('unlock() by mistake, at any moment, frees no lock that another thread holds', { timeout: 60000 }, async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  const lockers = await Promise.all([1, 2].map(() => startLocker(t, sab)))
  const counts = lockers.map(locker => locker.call('increment', 0, 4, 1))
  // Between the grant of its own claim and the callback this thread may free the lock.
  let isMine = false
  const awaited = (async () => {
    let count = 0
    for (; !lockers[0].isSet(1); count++) {
      isMine = true
      await lock.executeLocked(() => { new Int32Array(sab, 4)[0]++ })
      isMine = false
      await sleep(1)
    }
    return count
  })()
  let freed = 0
  let refused = 0
  for (const end = now() + 1000; now() < end;) {
    for (const slice = now() + 2; now() < slice;) {
      try {
        lock.unlock()
        if (!isMine) freed++
      } catch (error) {
        assert.strictEqual(error.code, 'ERR_NOT_LOCKED')
        refused++
      }
    }
    await sleep(0)
  }
  lockers.forEach(locker => locker.set(1))
  const count = (await Promise.all(counts.concat(awaited))).reduce((sum, each) => sum + each)
  assert.ok(refused > 0)
  assert.strictEqual(freed, 0)
  assert.strictEqual(new Int32Array(sab, 4)[0], count)
})

test('unlock() frees a lock taken through the bare word, also after failed tries and earlier holders', async t => {
  const sab = memory(64)
  const locks = [0, 4, 8, 12].map(byteOffset => new AsyncLock(sab, { byteOffset }))
  const locker = await startLocker(t, sab)
  // Both threads have held it and other locks before, unlocked them in another order, and tried without success.
  const tokens = locks.map(lock => lock.tryLock())
  for (const at of [0, 4, 8, 12]) assert.strictEqual(await locker.call('tryLock', at), null)
  for (const n of [1, 0, 3, 2]) tokens[n].unlock()
  for (const at of [8, 0, 12, 4]) await locker.call('lock', at)
  for (const at of [0, 8, 12, 4]) await locker.call('unlock', at)
  for (const [n, lock] of locks.entries()) {
    Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
    assert.strictEqual(lock.tryLock(), null)
    assert.strictEqual(await locker.call('tryLock', 4 * n), null)
    lock.unlock()
    assert.strictEqual(lock.locked, false)
    Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
    await locker.call('unlockLock', 4 * n)
    assert.strictEqual(lock.locked, false)
  }
})
