'use strict'

// Semaphore's hold, holdAsync and tryHold: a token for permits, which come back when their holder dies. every-class/forms.test.js tests the behaviour
// that all forms share, locks/every-class/callback-sync.test.js a storm.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { api } = require('../subject')
const { startMember, turns, untilWaiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, newLock, rejection } = require('../fixtures/lock-toolbox')
const { TURNS_ONCE_MORE, randomFrom, until } = require('../fixtures/queue-toolbox')

const { Semaphore, UnlockToken } = api
const MOST = 0x7fffffff
const HELD = { ownerDied: false, locked: true }

function setUp (permits) {
  const { sab } = newLock()
  const semaphore = new Semaphore(sab)
  if (permits > 0) semaphore.release(permits)
  return { sab, semaphore }
}

const onSemaphore = (member) => member.on('Semaphore')

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
  for (const token of [one, last]) assert.deepStrictEqual([token.unlock(), token.locked, token.unlock()], [true, false, false])
  assert.strictEqual(semaphore.available, 2)
  assert.strictEqual(await member.do('unlock', 'two'), true)
  assert.strictEqual(await member.do('unlock', 'two'), false)
  assert.strictEqual(await member.do('unlock', 'token'), true)
  assert.strictEqual(semaphore.available, 5)
})

test('tokens of one thread are given back in any order', () => {
  const { semaphore } = setUp(10)
  const random = randomFrom(7)
  for (let round = 0; round < 50; round++) {
    const tokens = [1, 2, 3, 4].map(n => semaphore.tryHold(n))
    assert.strictEqual(semaphore.available, 0)
    for (let left = tokens.length; left > 0; left--) {
      const [token] = tokens.splice(Math.floor(random() * left), 1)
      assert.strictEqual(token.unlock(), true)
    }
    assert.strictEqual(semaphore.available, 10)
  }
})

const disposes = typeof Symbol.dispose === 'symbol'
test('the token is disposable', { skip: !disposes && 'no Symbol.dispose here' }, () => {
  const { semaphore } = setUp(2)
  semaphore.tryHold(2)[Symbol.dispose]()
  assert.strictEqual(semaphore.available, 2)
})

test('the error of a wrong number of permits says which are allowed, and nothing changes', async t => {
  const { sab, semaphore } = setUp(5)
  const member = await startMember(t, sab)
  const calls = { tryHold: n => semaphore.tryHold(n), holdAsync: n => semaphore.holdAsync(n), hold: n => onSemaphore(member)('hold', n), useSync: n => onSemaphore(member)('useSync', n) }
  for (const name of Object.keys(calls)) {
    const call = async n => calls[name](n)
    for (const [n, what] of [[null, 'null'], ['1', 'the string "1"'], [1.5, 'the number 1.5'], [NaN, 'the number NaN']]) {
      const error = await rejection(call(n))
      assert.deepStrictEqual([error.name, error.message], ['TypeError', `${name}: n must be an integer, not ${what}`])
    }
    for (const n of [0, -1, MOST + 1]) {
      const error = await rejection(call(n))
      assert.deepStrictEqual([error.name, error.message], ['RangeError', `${name}: n must be from 1 to ${MOST}, not the number ${n}`])
    }
  }
  const forgotten = await rejection(semaphore.holdAsync({ timeout: 5 }))
  assert.strictEqual(forgotten.message, 'holdAsync: n must be an integer, not an object; for one permit write holdAsync(1, options)')
  assert.throws(() => semaphore.hold(), error => error instanceof TypeError && error.message === 'hold would block the main thread: use holdAsync() or use()')
  assert.strictEqual(semaphore.available, 5)
})

test('holds, acquires and uses are served in the order they came, and none overtakes', async t => {
  const { sab, semaphore } = setUp(0)
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
  const { sab, semaphore } = setUp(0)
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

test('a timeout or an abort gives up, and what is granted at the same moment is not lost', async () => {
  const { sab, semaphore } = setUp(0)
  const random = randomFrom(11)
  const late = await rejection(semaphore.holdAsync(1, { timeout: 1 }))
  assert.deepStrictEqual([late.name, late.code], ['TimeoutError', 'ERR_TIMEOUT'])
  for (let round = 0; round < 200; round++) {
    const controller = new TinyController({ reason: 'mine' })
    const held = watch(semaphore.holdAsync(2, { signal: controller.signal }))
    const next = semaphore.holdAsync(1)
    const first = random() < 0.5
    if (first) controller.abort()
    semaphore.release(2)
    if (random() < 0.3) await turns(1)
    controller.abort()
    await until(() => held.state !== 'pending')
    if (held.state === 'fulfilled') held.value.unlock()
    else assert.strictEqual(held.value, 'mine')
    const token = await next
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(semaphore.tryAcquire(2), true)
    assert.strictEqual(semaphore.available, 0)
    await untilWaiters(sab, 0, 0)
  }
})

test('a Condition refuses the token: permits exclude nobody', async () => {
  const { semaphore } = setUp(1)
  const condition = new api.Condition(new SharedArrayBuffer(4))
  const token = semaphore.tryHold()
  const error = await rejection(condition.waitAsync(token))
  assert.ok(error instanceof TypeError)
  assert.ok(error.message.endsWith('held exclusively, not of a share or of permits'), error.message)
  assert.strictEqual(token.unlock(), true)
})

// ——— a thread that dies ———

test('held permits come back when the thread dies, in every way, and serve who waits; none is told of the death', async t => {
  const { sab, semaphore } = setUp(6)
  for (const die of [member => member.terminate(), member => { member.do('exit', 3) }, member => { member.do('throwLater') }]) {
    const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
    await onSemaphore(victim)('hold as a', 2)
    await onSemaphore(victim)('holdAsync as b', 1)
    await onSemaphore(victim)('tryHold as c', 1)
    assert.strictEqual(await onSemaphore(victim)('tryAcquire', 1), true)
    assert.strictEqual(await victim.do('unlock', 'c'), true)
    assert.strictEqual(semaphore.available, 2)
    const blocked = onSemaphore(member)('hold', 4)
    await untilWaiters(sab, 0, 1)
    const awaited = semaphore.holdAsync(1)
    die(victim)
    assert.deepStrictEqual(await blocked, HELD)
    await victim.exited
    const token = await awaited
    assert.strictEqual(token.ownerDied, false)
    assert.strictEqual(semaphore.available, 0, 'one was merely acquired')
    token.unlock()
    semaphore.release(1)
    await member.terminate()
    assert.strictEqual(semaphore.available, 6)
  }
})

test('permits that were granted to a thread that dies before it hears of it come back', { skip: TURNS_ONCE_MORE }, async t => {
  const { sab, semaphore } = setUp(0)
  const victim = await startMember(t, sab)
  victim.do('beginAndBeBusy', 'call', ['Semaphore', 0, {}, 'holdAsync', [2]], 1, 2)
  await victim.untilSet(1)
  semaphore.release(2)
  assert.deepStrictEqual([semaphore.waiters, semaphore.available], [0, 0], 'granted')
  await victim.terminate()
  assert.strictEqual(victim.isSet(0), false)
  assert.strictEqual(semaphore.available, 2)
})

test('a thread that dies while it blocks for permits takes none along', async t => {
  const { sab, semaphore } = setUp(1)
  const victim = await startMember(t, sab)
  onSemaphore(victim)('hold', 2)
  await untilWaiters(sab, 0, 1)
  const behind = semaphore.holdAsync(1)
  await victim.terminate()
  assert.strictEqual((await behind).unlock(), true)
  assert.deepStrictEqual([semaphore.waiters, semaphore.available], [0, 1])
})
