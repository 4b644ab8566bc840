'use strict'
// oldest: force (each class waits there by other code)

// isTimeoutError: true for the errors of all waits whose time is over, of any copy and realm; it never throws.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../harness')
const { packageCopy, scratchFolder } = require('../fixtures/entries/folders')
const { rejection } = require('../fixtures/lock-toolbox')
const { MAJOR, startWorker } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { isTimeoutError, locks } = api

/** Waits that time out, each of another class. */
const waits = ({ AsyncLock, Barrier, Latch, Queue, RwLock, Semaphore, locks }) => {
  const [lock, rw, queue] = [new AsyncLock(), new RwLock(), Queue.create({ capacity: 1, messageSize: 8 })]
  const held = [lock.tryLock(), rw.tryLock(), locks.tryHold('x')]
  const all = [
    lock.lockAsync({ timeout: 0 }),
    lock.executeLocked(() => {}, { timeout: 5 }),
    rw.lockSharedAsync({ timeout: 5 }),
    new Semaphore().acquireAsync(1, { timeout: 5 }),
    Barrier.create({ parties: 2 }).waitAsync({ timeout: 5 }),
    Latch.create({ count: 1 }).waitAsync({ timeout: 5 }),
    queue.takeAsync({ timeout: 5 }),
    locks.request('x', { timeout: 5 }, () => {}),
    locks.requestAll(['w', 'x'], { timeout: 5 }, () => {}),
    locks.holdAsync('x', { timeout: 0 }),
    locks.holdAllAsync(['x'], { timeout: 5 })
  ]
  return Promise.all(all.map(rejection)).then(errors => {
    for (const token of held) token.unlock()
    return errors
  })
}

test('it is true for each class, and for blocking forms', async t => {
  for (const error of await waits(api)) assert.strictEqual(isTimeoutError(error), true, String(error))
  const token = locks.tryHold('x')
  assert.strictEqual(await startWorker(t, ({ api: { isTimeoutError, locks } }) => {
    try {
      return locks.hold('x', { timeout: 5 })
    } catch (error) {
      return isTimeoutError(error)
    }
  }).done(), true)
  token.unlock()
})

test('the errors of another copy of the package, and of another realm, are known by their code', async t => {
  const other = require(packageCopy(t))
  for (const error of await waits(other)) assert.strictEqual(isTimeoutError(error), true)
  for (const error of await waits(api)) assert.strictEqual(other.isTimeoutError(error), true)
  const error = vm.runInNewContext("Object.assign(new Error('late'), { code: 'ERR_TIMEOUT' })")
  assert.strictEqual(isTimeoutError(error), true)
})

test('process locks: true for a timeout, false for the end of the locks', async t => {
  if (MAJOR < 16) t.skip('process locks need Node 16')
  const processes = require('../../processes')
  const processLocks = processes.processLocks(scratchFolder(t))
  const held = await processLocks.hold('x')
  const [late, closed] = [processLocks.hold('x', { timeout: 0 }), processLocks.hold('x')].map(rejection)
  assert.deepStrictEqual([processes, api].map(({ isTimeoutError }) => isTimeoutError), [isTimeoutError, isTimeoutError])
  assert.strictEqual(isTimeoutError(await late), true)
  await Promise.all([processLocks.close(), held.unlock()])
  assert.strictEqual(isTimeoutError(await closed), false)
})

test('it is false for all else, and never throws', async () => {
  const fail = () => { throw new Error('on purpose') }
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const deep = function () { return deep() }
  const named = Object.assign(new Error('x'), { name: 'TimeoutError' })
  const values = [
    undefined, null, 0, 1, '', 'ERR_TIMEOUT', true, Symbol('x'), {}, [], fail, new Error('x'), named, { code: 'OTHER' },
    { code: { toString: () => 'ERR_TIMEOUT' } }, { get code () { return fail() } }, { get code () { return deep() } },
    new Proxy({}, { get: fail }), new Proxy(fail, { get: fail }), revoked.proxy, Object.create(null)
  ]
  for (const value of values) assert.strictEqual(isTimeoutError(value), false)
  assert.strictEqual(isTimeoutError(), false)
  const controller = { aborted: true, reason: new Error('aborted'), addEventListener () {} }
  assert.strictEqual(isTimeoutError(await rejection(locks.request('x', { signal: controller }, () => {}))), false)
  let reads = 0
  assert.strictEqual(isTimeoutError({ get code () { reads++; return 'ERR_TIMEOUT' } }), true)
  assert.strictEqual(reads, 1)
})
