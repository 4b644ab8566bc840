'use strict'

// Semaphore: permits. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { until } = require('../fixtures/queue-toolbox')

const { Semaphore, UnlockToken } = api
const MOST = 0x7fffffff
const HELD = { ownerDied: false, locked: true }

function setUp (permits = 0) {
  const sab = new SharedArrayBuffer(4)
  const semaphore = new Semaphore(sab)
  if (permits > 0) semaphore.release(permits)
  return { sab, semaphore, word: new Int32Array(sab) }
}

const onSemaphore = (member) => member.on('Semaphore')

// ——— permits ———

test('zero-filled memory has no permits; release adds them, and the word is their number', () => {
  const { semaphore, word } = setUp()
  assert.strictEqual(semaphore.available, 0)
  assert.strictEqual(semaphore.tryAcquire(), false)
  assert.strictEqual(semaphore.release(), undefined)
  assert.strictEqual(semaphore.available, 1)
  semaphore.release(4)
  assert.strictEqual(semaphore.available, 5)
  assert.strictEqual(word[0], 5)
  assert.strictEqual(semaphore.tryAcquire(6), false)
  assert.strictEqual(semaphore.tryAcquire(2), true)
  assert.strictEqual(semaphore.available, 3)
  assert.strictEqual(semaphore.tryAcquire(), true)
  assert.strictEqual(semaphore.tryAcquire(3), false)
  assert.strictEqual(semaphore.tryAcquire(2), true)
  assert.strictEqual(semaphore.available, 0)
  Atomics.store(word, 0, 3)
  assert.strictEqual(semaphore.tryAcquire(3), true)
})

test('acquire takes free permits without waiting: blocking, awaiting, using', async t => {
  const { sab, semaphore } = setUp(10)
  const member = await startMember(t, sab)
  assert.strictEqual(await onSemaphore(member)('acquire'), undefined)
  assert.strictEqual(await onSemaphore(member)('acquire', 2), undefined)
  assert.strictEqual(await onSemaphore(member)('acquire', 1, { timeout: 0 }), undefined)
  assert.strictEqual(await onSemaphore(member)('tryAcquire', 1), true)
  assert.strictEqual(await semaphore.acquireAsync(), undefined)
  assert.strictEqual(await semaphore.acquireAsync(2, { timeout: 0 }), undefined)
  assert.strictEqual(semaphore.available, 2)
  assert.strictEqual(await semaphore.use(2, () => semaphore.available, { timeout: 0 }), 0)
  assert.strictEqual(semaphore.available, 2)
  const promise = semaphore.acquireAsync(2)
  assert.strictEqual(semaphore.available, 0, 'taken at once')
  await promise
})

test('any thread may release: a semaphore is also a signal', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const result = onSemaphore(member)('acquire', 3)
  await untilWaiters(sab, 0, 1)
  for (let n = 0; n < 2; n++) {
    semaphore.release()
    await turns()
    assert.strictEqual(semaphore.available, n + 1, 'not enough yet')
  }
  semaphore.release()
  await result
  assert.strictEqual(semaphore.available, 0)
  await member.terminate()
  assert.strictEqual(semaphore.available, 0, 'what was acquired belongs to nobody')
})

test('more permits than the word can hold are a RangeError, and change nothing', async () => {
  const { sab, semaphore } = setUp(MOST)
  assert.strictEqual(semaphore.available, MOST)
  for (const n of [1, 2, MOST]) {
    assert.throws(() => semaphore.release(n), (error) => {
      assert.ok(error instanceof RangeError)
      assert.strictEqual(error.message, `release: ${n} more permits would exceed ${MOST}`)
      return true
    })
    assert.strictEqual(semaphore.available, MOST)
  }
  assert.strictEqual(semaphore.tryAcquire(MOST), true)
  const result = semaphore.acquireAsync(MOST)
  assert.strictEqual(waiters(sab), 1)
  semaphore.release(MOST - 1)
  semaphore.release(1)
  await result
  assert.strictEqual(semaphore.available, 0)
})

// ——— the order ———

test('holds, acquires and uses are served in the order they came, and none overtakes', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const order = []
  const all = []
  const lineUp = async (name, promise) => {
    all.push(promise.then(() => order.push(name)))
    await untilWaiters(sab, 0, all.length)
  }
  await lineUp('hold', onSemaphore(member)('hold', 2))
  await lineUp('acquire', semaphore.acquireAsync())
  await lineUp('holdAsync', semaphore.holdAsync())
  await lineUp('use', semaphore.use(1, () => {}))
  assert.strictEqual(semaphore.tryHold(), null)
  semaphore.release(1)
  assert.strictEqual(semaphore.tryHold(), null, 'it belongs to the first in line')
  for (const promise of all) {
    semaphore.release(1)
    await promise
    await turns()
  }
  assert.deepStrictEqual(order, ['hold', 'acquire', 'holdAsync', 'use'])
})

test('one release serves as many as it is enough for, and no more', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const watched = [2, 1, 3].map(n => watch(semaphore.acquireAsync(n)))
  const blocked = watch(onSemaphore(member)('acquire', 2))
  await untilWaiters(sab, 0, 4)
  const last = watch(semaphore.acquireAsync(1))
  semaphore.release(5)
  assert.strictEqual(waiters(sab), 3)
  assert.strictEqual(semaphore.available, 2)
  await until(() => watched[1].state === 'fulfilled')
  await turns()
  assert.deepStrictEqual(watched.map(each => each.state), ['fulfilled', 'fulfilled', 'pending'])
  semaphore.release(3)
  await until(() => watched[2].state === 'fulfilled')
  await until(() => blocked.state === 'fulfilled')
  await turns()
  assert.strictEqual(last.state, 'pending')
  assert.strictEqual(semaphore.available, 0)
  semaphore.release()
  await until(() => last.state === 'fulfilled')
})

test('ten thousand may wait, and are served in order', { timeout: 60000 }, async () => {
  const { sab, semaphore } = setUp()
  const COUNT = 10000
  let next = 0
  const claim = async (_, n) => {
    await semaphore.acquireAsync(1 + n % 3)
    assert.strictEqual(n, next++)
  }
  const all = Array.from({ length: COUNT }, claim)
  assert.strictEqual(waiters(sab), COUNT)
  let needed = 0
  for (let n = 0; n < COUNT; n++) needed += 1 + n % 3
  while (needed > 0) {
    const some = Math.min(needed, 997)
    semaphore.release(some)
    needed -= some
    await turns(1)
  }
  await Promise.all(all)
  assert.strictEqual(semaphore.available, 0)
})

// ——— tokens ———

test('a token holds as many permits as were asked for, one by default, until it is unlocked, once', async t => {
  const { sab, semaphore } = setUp(5)
  const member = await startMember(t, sab)
  assert.deepStrictEqual(await onSemaphore(member)('hold'), HELD)
  assert.deepStrictEqual(await onSemaphore(member)('hold as two', 2, { timeout: 0 }), HELD)
  assert.strictEqual(semaphore.available, 2)
  assert.strictEqual(semaphore.tryHold(3), null)
  const one = semaphore.tryHold()
  assert.ok(one instanceof UnlockToken)
  assert.strictEqual(util.inspect(one), 'UnlockToken { locked: true, ownerDied: false }')
  const last = await semaphore.holdAsync()
  assert.strictEqual(semaphore.available, 0)
  for (const token of [one, last]) assert.deepStrictEqual([token.unlock(), token.locked], [true, false])
  assert.strictEqual(semaphore.available, 2)
  assert.strictEqual(await member.do('unlock', 'two'), true)
  assert.strictEqual(await member.do('unlock', 'two'), false)
  assert.strictEqual(await member.do('unlock', 'token'), true)
  assert.strictEqual(semaphore.available, 5)
})

test('a thread that holds permits may block for more: another thread gives some back', async t => {
  const { sab } = setUp(2)
  const [member, other] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  assert.deepStrictEqual(await onSemaphore(member)('hold as first'), HELD)
  assert.deepStrictEqual(await onSemaphore(other)('hold as theirs'), HELD)
  const more = onSemaphore(member)('hold')
  await untilWaiters(sab, 0, 1)
  await other.do('unlock', 'theirs')
  assert.deepStrictEqual(await more, HELD)
})

test('a thread may block for permits behind a promise of its own: both are served', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const promise = onSemaphore(member)('holdAsync as promised')
  await untilWaiters(sab, 0, 1)
  const blocked = onSemaphore(member)('hold as blocked')
  await untilWaiters(sab, 0, 2)
  semaphore.release(2)
  assert.deepStrictEqual([await promise, await blocked], [HELD, HELD])
  assert.deepStrictEqual([await member.do('unlock', 'promised'), await member.do('unlock', 'blocked')], [true, true])
  assert.strictEqual(semaphore.available, 2)
})
