'use strict'

// RwLock: many readers or one writer. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { rejection, memory } = require('../fixtures/lock-toolbox')
const { until } = require('../fixtures/queue-toolbox')

const { RwLock, UnlockToken } = api

function setUp () {
  const sab = memory(4)
  return { sab, lock: new RwLock(sab), word: new Int32Array(sab) }
}

const onLock = (member) => member.on('RwLock')
const FREE = { ownerDied: false, locked: true }

// ——— readers and writers ———

test('zero-filled memory is a free lock; the word is the number of readers, or -1', () => {
  const { lock, word } = setUp()
  const state = () => [lock.locked, lock.readers, word[0]]
  assert.deepStrictEqual(state(), [false, 0, 0])
  const readers = [1, 2, 3].map(() => lock.tryLockShared())
  assert.ok(readers.every(token => token instanceof UnlockToken && token.locked && !token.ownerDied))
  assert.deepStrictEqual(state(), [false, 3, 3])
  assert.strictEqual(lock.tryLock(), null)
  readers.forEach((token, n) => {
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(token.unlock(), false)
    assert.strictEqual(token.locked, false)
    assert.deepStrictEqual(state(), [false, 2 - n, 2 - n])
  })
  const writer = lock.tryLock()
  assert.ok(writer instanceof UnlockToken && writer.locked && !writer.ownerDied)
  assert.deepStrictEqual(state(), [true, 0, -1])
  assert.strictEqual(lock.tryLock(), null)
  assert.strictEqual(lock.tryLockShared(), null)
  assert.strictEqual(writer.unlock(), true)
  assert.strictEqual(writer.unlock(), false)
  assert.deepStrictEqual(state(), [false, 0, 0])
})

test('readers are together, in threads and on main; a writer is alone', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  assert.deepStrictEqual(await onLock(members[0])('lockShared'), FREE)
  assert.deepStrictEqual(await onLock(members[1])('lockSharedAsync'), FREE)
  const mine = await lock.lockSharedAsync()
  assert.strictEqual(lock.readers, 3)
  const writer = onLock(members[0])('lockAsync as writer')
  await untilWaiters(sab, 0, 1)
  const watched = watch(writer)
  const unlock = () => members[1].do('unlock', 'token')
  for (const giveBack of [unlock, () => mine.unlock(), () => members[0].do('unlock', 'token')]) {
    await turns()
    assert.deepStrictEqual([watched.state, lock.locked], ['pending', false])
    await giveBack()
  }
  assert.deepStrictEqual(await writer, FREE)
  assert.strictEqual(lock.locked, true)
  assert.strictEqual(lock.tryLockShared(), null)
  const readers = [watch(lock.lockSharedAsync()), watch(onLock(members[1])('lockShared'))]
  await untilWaiters(sab, 0, 2)
  await turns()
  assert.ok(readers.every(({ state }) => state === 'pending'))
  await members[0].do('unlock', 'writer')
  await until(() => readers.every(({ state }) => state === 'fulfilled'))
  assert.strictEqual(lock.readers, 2)
  readers[0].value.unlock()
})

// ——— the order ———

test('readers that queued behind a writer enter together; a reader behind the next writer does not', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1, 2].map(() => startMember(t, sab)))
  const writer = lock.tryLock()
  const theirs = [onLock(members[0])('lockShared'), onLock(members[1])('lockSharedAsync')]
  const first = [lock.lockSharedAsync(), theirs[0], lock.lockSharedAsync(), theirs[1]].map(watch)
  await untilWaiters(sab, 0, 4)
  const second = watch(onLock(members[2])('lock'))
  await untilWaiters(sab, 0, 5)
  const third = watch(lock.lockSharedAsync())
  assert.strictEqual(waiters(sab), 6)
  writer.unlock()
  assert.strictEqual(lock.readers, 4, 'all of them at once')
  await until(() => first.every(({ state }) => state === 'fulfilled'))
  await turns()
  assert.deepStrictEqual([second.state, third.state], ['pending', 'pending'])
  first[0].value.unlock()
  first[2].value.unlock()
  await members[0].do('unlock', 'token')
  await turns()
  assert.strictEqual(second.state, 'pending')
  await members[1].do('unlock', 'token')
  await until(() => second.state === 'fulfilled')
  await turns()
  assert.strictEqual(third.state, 'pending')
  await members[2].do('unlock', 'token')
  await until(() => third.state === 'fulfilled')
  third.value.unlock()
  assert.strictEqual(lock.readers, 0)
})

// ——— downgrade ———

test('downgrade: waiting readers enter, no writer comes in between, and the token is another', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const exclusive = lock.tryLock()
  const reader = watch(onLock(members[0])('lockShared'))
  await untilWaiters(sab, 0, 1)
  const awaited = watch(lock.lockSharedAsync())
  const writer = watch(onLock(members[1])('lock'))
  await untilWaiters(sab, 0, 3)
  const shared = exclusive.downgrade()
  assert.ok(shared instanceof UnlockToken)
  assert.deepStrictEqual([exclusive.locked, shared.locked, lock.locked], [false, true, false])
  assert.strictEqual(exclusive.unlock(), false)
  assert.strictEqual(shared.downgrade, undefined)
  assert.strictEqual(lock.readers, 3)
  await until(() => reader.state === 'fulfilled' && awaited.state === 'fulfilled')
  await turns()
  assert.strictEqual(writer.state, 'pending')
  assert.strictEqual(lock.tryLockShared(), null, 'the writer that waits stops new readers')
  assert.strictEqual(shared.unlock(), true)
  awaited.value.unlock()
  await members[0].do('unlock', 'token')
  await until(() => writer.state === 'fulfilled')
  await members[1].do('unlock', 'token')
})

test('downgrade: a writer that waits first is not overtaken; in a thread; and only once', async t => {
  const { sab, lock } = setUp()
  const member = await startMember(t, sab)
  await onLock(member)('lock')
  const writer = watch(lock.lockAsync())
  assert.deepStrictEqual(await member.do('downgrade', 'token', 'shared'), FREE)
  await turns()
  assert.strictEqual(writer.state, 'pending')
  assert.strictEqual(lock.readers, 1)
  const error = await rejection(member.do('downgrade', 'token', 'again'))
  assert.ok(error.isError)
  assert.ok(/^downgrade: the token is not locked any more/.test(error.message), error.message)
  assert.strictEqual(error.code, 'ERR_NOT_LOCKED')
  assert.strictEqual(await member.do('unlock', 'token'), false)
  assert.strictEqual(await member.do('unlock', 'shared'), true)
  await until(() => writer.state === 'fulfilled')
  const token = writer.value
  token.unlock()
  assert.throws(() => token.downgrade(), { code: 'ERR_NOT_LOCKED' })
  assert.deepStrictEqual([lock.locked, lock.readers], [false, 0])
})

// ——— a thread that waits for itself ———

test('blocking for a lock that the thread itself holds or awaits is ERR_DEADLOCK', async t => {
  const { sab, lock } = setUp()
  const member = await startMember(t, sab)
  const other = await startMember(t, sab)
  const on = onLock(member)
  const refuses = async (form, does) => {
    const error = await rejection(on(form))
    assert.strictEqual(error.code, 'ERR_DEADLOCK', `${form}: ${error}`)
    const mode = form.startsWith('lockShared') ? 'shared' : 'exclusive'
    const what = `an RwLock (${mode}), which this thread itself already ${does}`
    assert.strictEqual(error.message, `${form}: would wait for ${what}`)
  }
  await on('lock')
  await refuses('lock', 'holds')
  await refuses('lockShared', 'holds')
  assert.strictEqual(lock.locked, true)
  await member.do('unlock', 'token')

  await on('lockShared')
  await refuses('lock', 'holds')
  assert.deepStrictEqual(await on('lockShared as second'), FREE, 'a second share needs no waiting')
  await member.do('unlock', 'second')
  const writer = watch(onLock(other)('lock'))
  await untilWaiters(sab, 0, 1)
  await refuses('lockShared', 'holds')
  await member.do('unlock', 'token')
  await until(() => writer.state === 'fulfilled')

  const awaited = on('lockAsync')
  await untilWaiters(sab, 0, 1)
  await refuses('lock', 'awaits')
  await refuses('lockShared', 'awaits')
  assert.strictEqual((await rejection(on('lockShared', { timeout: 5 }))).name, 'TimeoutError')
  await other.do('unlock', 'token')
  assert.deepStrictEqual(await awaited, FREE)
  await member.do('unlock', 'token')
  assert.deepStrictEqual([lock.locked, lock.readers, waiters(sab)], [false, 0, 0])
})

// ——— a thread that dies ———

test('after a writer\'s death readers are told, until a writer has been', async t => {
  const { sab, lock } = setUp()
  const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  await onLock(victim)('lock')
  // They enter together, and all of them see what it left.
  const readers = [lock.lockSharedAsync(), onLock(member)('lockShared'), lock.lockSharedAsync()]
  await untilWaiters(sab, 0, 3)
  await victim.terminate()
  const [first, second, third] = await Promise.all(readers)
  assert.deepStrictEqual([first.ownerDied, second.ownerDied, third.ownerDied], [true, true, true])
  const late = lock.tryLockShared()
  assert.strictEqual(late.ownerDied, true)
  for (const token of [first, third, late]) token.unlock()
  await member.do('unlock', 'token')
  assert.deepStrictEqual(await onLock(member)('lockShared'), { ownerDied: true, locked: true })
  await member.do('unlock', 'token')

  const writer = lock.tryLock()
  assert.strictEqual(writer.ownerDied, true)
  writer.unlock()
  for (const form of ['tryLock', 'tryLockShared']) {
    const token = lock[form]()
    assert.strictEqual(token.ownerDied, false, 'whoever came after that writer need not care')
    token.unlock()
  }
  assert.deepStrictEqual(await onLock(member)('lockShared'), FREE)
})

test('a writer that was told and dies in its turn leaves the mark to the next', async t => {
  const { sab, lock } = setUp()
  for (let n = 0; n < 2; n++) {
    const victim = await startMember(t, sab)
    assert.deepStrictEqual(await onLock(victim)('lock'), { ownerDied: n > 0, locked: true })
    await victim.terminate()
  }
  const token = lock.tryLock()
  assert.strictEqual(token.ownerDied, true)
  token.unlock()
})

test('a thread that has downgraded dies as a reader', async t => {
  const { sab, lock } = setUp()
  const victim = await startMember(t, sab)
  await onLock(victim)('lock')
  await victim.do('downgrade', 'token', 'shared')
  assert.strictEqual(lock.readers, 1)
  await victim.terminate()
  assert.strictEqual(lock.readers, 0)
  const token = lock.tryLock()
  assert.strictEqual(token.ownerDied, false)
  token.unlock()
})

// ——— the word ———

test('a word full of readers takes no more', () => {
  const { lock, word } = setUp()
  Atomics.store(word, 0, 0x7fffffff)
  assert.strictEqual(lock.tryLockShared(), null)
  Atomics.store(word, 0, 0x7ffffffe)
  const token = lock.tryLockShared()
  assert.strictEqual(lock.readers, 0x7fffffff)
  token.unlock()
  assert.strictEqual(lock.readers, 0x7ffffffe)
})
