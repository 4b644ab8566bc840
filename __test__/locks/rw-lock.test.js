'use strict'

// RwLock: many readers or one writer. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection, memory } = require('../fixtures/lock-toolbox')
const { now, randomFrom, sleep, startWorker, until } = require('../fixtures/queue-toolbox')

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

test('two instances on one word are one lock, and neighbours are not', () => {
  const sab = memory(8)
  const [a, b, c] = [0, 0, 4].map(byteOffset => new RwLock(sab, { byteOffset }))
  const token = a.tryLock()
  assert.deepStrictEqual([a.locked, b.locked, c.locked], [true, true, false])
  assert.strictEqual(b.tryLockShared(), null)
  const reader = c.tryLockShared()
  assert.deepStrictEqual([b.readers, c.readers], [0, 1])
  token.unlock()
  reader.unlock()
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
  for (const giveUp of [() => members[1].do('unlock', 'token'), () => mine.unlock(), () => members[0].do('unlock', 'token')]) {
    await turns()
    assert.strictEqual(watched.state, 'pending')
    assert.strictEqual(lock.locked, false)
    await giveUp()
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

test('every form gives a token of its kind', async t => {
  const { sab, lock } = setUp()
  const member = await startMember(t, sab)
  for (const form of ['lock', 'tryLock', 'lockAsync']) {
    assert.deepStrictEqual(await onLock(member)(form), FREE)
    assert.strictEqual(lock.locked, true)
    await member.do('unlock', 'token')
  }
  for (const form of ['lockShared', 'tryLockShared', 'lockSharedAsync']) {
    assert.deepStrictEqual(await onLock(member)(form), FREE)
    assert.strictEqual(lock.readers, 1)
    await member.do('unlock', 'token')
  }
  const exclusive = await lock.lockAsync()
  assert.strictEqual(typeof exclusive.downgrade, 'function')
  exclusive.unlock()
  const shared = await lock.lockSharedAsync()
  assert.strictEqual(shared.downgrade, undefined)
  shared.unlock()
})

test('executeLocked and executeShared give the callback\'s result, and unlock however it ends', async () => {
  const { lock } = setUp()
  const error = new Error('mine')
  for (const [execute, held] of [[(...args) => lock.executeLocked(...args), -1], [(...args) => lock.executeShared(...args), 1]]) {
    const word = new Int32Array(lock.buffer)
    assert.strictEqual(await execute(token => {
      assert.ok(token instanceof UnlockToken)
      assert.strictEqual(word[0], held)
      return 'result'
    }), 'result')
    assert.strictEqual(await execute(async () => { await sleep(1); return word[0] }), held)
    assert.strictEqual(word[0], 0)
    assert.strictEqual(await rejection(execute(() => { throw error })), error)
    assert.strictEqual(await rejection(execute(async () => { await sleep(1); throw error })), error)
    assert.strictEqual(word[0], 0)
    let other
    await execute(token => {
      token.unlock()
      other = lock.tryLock()
    })
    assert.strictEqual(other.locked, true, 'the end took away the lock of another')
    other.unlock()
    for (const callback of [undefined, null, {}, 5]) {
      const error = await rejection(execute(callback))
      assert.ok(error instanceof TypeError)
      assert.ok(/^execute(Locked|Shared): callback must be a function, not /.test(error.message), error.message)
    }
  }
})

const disposes = typeof Symbol.dispose === 'symbol'
test('tokens are disposable', { skip: !disposes && 'no Symbol.dispose here' }, () => {
  const { lock, word } = setUp()
  for (const token of [lock.tryLock(), null]) {
    const held = token || lock.tryLockShared()
    held[Symbol.dispose]()
    assert.strictEqual(word[0], 0)
    held[Symbol.dispose]()
    assert.strictEqual(word[0], 0)
  }
})

test('tokens are unlocked in any order', () => {
  const random = randomFrom(17)
  const sab = memory(4 * 20)
  const locks = Array.from({ length: 20 }, (_, n) => new RwLock(sab, { byteOffset: 4 * n }))
  const words = new Int32Array(sab)
  const held = locks.map(() => [])
  for (let step = 0; step < 5000; step++) {
    const n = Math.floor(random() * locks.length)
    const choice = random()
    const before = words[n]
    if (choice < 0.3) {
      const token = locks[n].tryLockShared()
      assert.strictEqual(token !== null, before >= 0)
      if (token !== null) held[n].push(token)
    } else if (choice < 0.5) {
      const token = locks[n].tryLock()
      assert.strictEqual(token !== null, before === 0)
      if (token !== null) held[n].push(token)
    } else if (choice < 0.6 && before === -1) {
      const [token] = held[n]
      held[n] = [token.downgrade()]
      assert.strictEqual(token.locked, false)
    } else if (held[n].length > 0) {
      const [token] = held[n].splice(Math.floor(random() * held[n].length), 1)
      assert.strictEqual(token.unlock(), true)
    }
    assert.strictEqual(Math.abs(words[n]), held[n].length)
  }
})

// ——— the order ———

test('a waiting writer stops new readers', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const reader = lock.tryLockShared()
  const writer = watch(onLock(members[0])('lock'))
  await untilWaiters(sab, 0, 1)
  assert.strictEqual(lock.tryLockShared(), null)
  assert.strictEqual(await onLock(members[1])('tryLockShared'), null)
  assert.strictEqual((await rejection(lock.lockSharedAsync({ timeout: 0 }))).name, 'TimeoutError')
  assert.strictEqual((await rejection(onLock(members[1])('lockShared', { timeout: 2 }))).name, 'TimeoutError')
  const later = watch(lock.lockSharedAsync())
  await turns()
  assert.strictEqual(later.state, 'pending')
  assert.strictEqual(lock.readers, 1)
  reader.unlock()
  await until(() => writer.state === 'fulfilled')
  await turns()
  assert.strictEqual(later.state, 'pending')
  await members[0].do('unlock', 'token')
  await until(() => later.state === 'fulfilled')
  later.value.unlock()
})

test('readers that queued behind a writer enter together; a reader behind the next writer does not', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1, 2].map(() => startMember(t, sab)))
  const writer = lock.tryLock()
  const first = [watch(lock.lockSharedAsync()), watch(onLock(members[0])('lockShared')), watch(lock.lockSharedAsync()), watch(onLock(members[1])('lockSharedAsync'))]
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

test('writers are served in the order they came, blocked threads and promises', async t => {
  const { sab, lock } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const held = lock.tryLock()
  const all = []
  const lineUp = async (promise) => {
    all.push(promise)
    await untilWaiters(sab, 0, all.length)
  }
  await lineUp(onLock(members[0])('lock'))
  await lineUp(lock.lockAsync())
  await lineUp(onLock(members[1])('lock'))
  await lineUp(lock.lockAsync())
  const states = all.map(watch)
  held.unlock()
  for (let n = 0; n < 4; n++) {
    const token = await all[n]
    await turns()
    assert.deepStrictEqual(states.map(({ state }) => state === 'fulfilled'), states.map((_, m) => m <= n))
    if (n % 2) token.unlock()
    else await members[n / 2].do('unlock', 'token')
  }
})

for (const how of ['an abort', 'a timeout', 'its thread\'s death']) {
  test(`when a waiting writer gives up (${how}), the readers behind it enter`, async t => {
    const { sab, lock } = setUp()
    const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
    const reader = lock.tryLockShared()
    const controller = new TinyController()
    let writer
    if (how === 'an abort') writer = lock.lockAsync({ signal: controller.signal })
    else if (how === 'a timeout') writer = lock.lockAsync({ timeout: 300 })
    else writer = onLock(members[0])('lock')
    const giving = watch(writer)
    await untilWaiters(sab, 0, 1)
    const blocked = onLock(members[1])('lockShared')
    // On a busy machine the time may be over by now.
    await until(() => waiters(sab) === 2 || giving.state !== 'pending')
    const awaited = lock.lockSharedAsync()
    if (how === 'an abort') controller.abort()
    if (how.endsWith('death')) await members[0].terminate()
    assert.deepStrictEqual(await blocked, FREE)
    const token = await awaited
    assert.strictEqual(token.ownerDied, false, 'it had nothing')
    assert.strictEqual(lock.readers, 3)
    for (const each of [reader, token]) each.unlock()
    await members[1].do('unlock', 'token')
    assert.strictEqual(lock.readers, 0)
  })
}

test('neither side starves: readers that never let the word become free, writers that follow each other', { timeout: 60000 }, async t => {
  const { sab, lock } = setUp()
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const loop = ({ api, post, data: { sab, stop, form } }) => {
    const lock = new api.RwLock(sab)
    let token = lock[form]()
    post('runs')
    while (Atomics.load(stop, 0) === 0) {
      // Readers take their next share, if they get it, before they unlock the last.
      const next = form === 'lockShared' ? lock.tryLockShared() : null
      token.unlock()
      token = next || lock[form]()
    }
    token.unlock()
  }
  for (const [form, mine] of [['lockShared', () => lock.lockAsync({ timeout: 20000 })], ['lock', () => lock.lockSharedAsync({ timeout: 20000 })]]) {
    Atomics.store(stop, 0, 0)
    const workers = [0, 1].map(() => startWorker(t, loop, { sab, stop, form }))
    for (const worker of workers) await worker.next()
    for (let n = 0; n < 20; n++) {
      const token = await mine()
      if (n % 4 === 0) await sleep(1)
      token.unlock()
    }
    Atomics.store(stop, 0, 1)
    for (const worker of workers) await worker.done()
    assert.deepStrictEqual([lock.locked, lock.readers], [false, 0])
  }
})

test('under load without timeouts every writer is alone, and every claim is served', { timeout: 120000 }, async t => {
  const COUNT = 60000
  const { sab, lock } = setUp()
  const data = new Int32Array(new SharedArrayBuffer(8)) // twice the same number, which writers raise
  const work = async ({ api, data: { sab, data, count, me } }) => {
    const lock = new api.RwLock(sab)
    const awaits = me === 2
    if (awaits) count /= 20
    for (let n = 0; n < count; n++) {
      if ((n + me) % 3 === 0) {
        const token = awaits ? await lock.lockAsync() : lock.lock()
        data[0]++
        data[1]++
        token.unlock()
      } else {
        const token = awaits ? await lock.lockSharedAsync() : lock.lockShared()
        if (data[0] !== data[1]) throw new Error('a reader has met a writer')
        token.unlock()
      }
    }
    return Array.from({ length: count }, (_, n) => n).filter(n => (n + me) % 3 === 0).length
  }
  const workers = [0, 1, 2].map(me => startWorker(t, work, { sab, data, count: COUNT, me }))
  let written = 0
  for (const worker of workers) written += await worker.done()
  assert.deepStrictEqual(Array.from(data), [written, written])
  assert.deepStrictEqual([lock.locked, lock.readers, waiters(sab)], [false, 0, 0])
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
    assert.strictEqual(error.message, `${form}: would wait for an RwLock (${mode}), which this thread itself already ${does}`)
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

for (const [how, die] of [
  ['terminate()', member => member.terminate()],
  ['process.exit()', member => { member.do('exit', 3) }],
  ['an exception', member => { member.do('throwLater') }]
]) {
  test(`${how}: the shares of a reader are given back, and no holder is told of the death`, async t => {
    const { sab, lock } = setUp()
    const victim = await startMember(t, sab)
    await onLock(victim)('lockShared as a')
    await onLock(victim)('lockSharedAsync as b')
    await onLock(victim)('lock as c', { timeout: 1 }).catch(() => {})
    const mine = lock.tryLockShared()
    assert.strictEqual(lock.readers, 3)
    const writer = watch(lock.lockAsync())
    die(victim)
    await victim.exited
    assert.strictEqual(lock.readers, 1)
    mine.unlock()
    await until(() => writer.state === 'fulfilled')
    assert.strictEqual(writer.value.ownerDied, false)
    writer.value.unlock()
  })

  test(`${how}: after a writer's death readers are told, until a writer has been`, async t => {
    const { sab, lock } = setUp()
    const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
    await onLock(victim)('lock')
    // They enter together, and all of them see what it left.
    const readers = [lock.lockSharedAsync(), onLock(member)('lockShared'), lock.lockSharedAsync()]
    await untilWaiters(sab, 0, 3)
    die(victim)
    await victim.exited
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

  test(`${how}: a writer that waits for a writer that dies is told`, async t => {
    for (const form of ['lock', 'lockAsync']) {
      const { sab, lock } = setUp()
      const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
      await onLock(victim)('lockAsync')
      const next = onLock(member)(form)
      await untilWaiters(sab, 0, 1)
      const reader = lock.lockSharedAsync()
      die(victim)
      assert.deepStrictEqual(await next, { ownerDied: true, locked: true })
      await member.do('unlock', 'token')
      const token = await reader
      assert.strictEqual(token.ownerDied, false)
      token.unlock()
      await member.terminate()
    }
  })
}

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

test('downgrade keeps ownerDied', async t => {
  const { sab, lock } = setUp()
  const victim = await startMember(t, sab)
  await onLock(victim)('lock')
  await victim.terminate()
  const shared = lock.tryLock().downgrade()
  assert.strictEqual(shared.ownerDied, true)
  shared.unlock()
})

test('a lock that was granted to a thread that dies before it runs goes to the next claim', async t => {
  for (const [form, told] of [['lockAsync', true], ['lockSharedAsync', false]]) {
    const { sab, lock } = setUp()
    const victim = await startMember(t, sab)
    const held = lock.tryLock()
    victim.do('beginAndBeBusy', 'call', ['RwLock', 0, {}, form, []], 1, 2)
    await victim.untilSet(1)
    assert.strictEqual(waiters(sab), 1)
    const next = lock.lockAsync()
    held.unlock()
    assert.strictEqual(waiters(sab), 1, 'granted')
    await victim.terminate()
    assert.strictEqual(victim.isSet(0), false)
    const token = await next
    assert.strictEqual(token.ownerDied, told)
    token.unlock()
  }
})

// ——— giving up ———

test('timeouts and aborts that meet the grant lose nothing: readers and writers, threads and main', { timeout: 60000 }, async t => {
  const seed = 8
  const random = randomFrom(seed)
  const { sab, lock } = setUp()
  const inside = new Int32Array(new SharedArrayBuffer(4)) // readers, or -1
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const workers = [0, 1].map(n => startWorker(t, ({ api, post, randomFrom, data: { sab, inside, stop, seed } }) => {
    const random = randomFrom(seed)
    const lock = new api.RwLock(sab)
    post('begins')
    let served = 0
    while (Atomics.load(stop, 0) === 0) {
      const writes = random() < 0.4
      try {
        const token = lock[writes ? 'lock' : 'lockShared']({ timeout: random() * 2 })
        const before = writes ? Atomics.compareExchange(inside, 0, 0, -1) : Atomics.add(inside, 0, 1)
        if (writes ? before !== 0 : before < 0) throw new Error(`${writes ? 'writer' : 'reader'} met ${before}`)
        served++
        if (writes) Atomics.store(inside, 0, 0)
        else Atomics.sub(inside, 0, 1)
        token.unlock()
      } catch (error) {
        if (error.name !== 'TimeoutError') throw error
      }
    }
    return served
  }, { sab, inside, stop, seed: seed + n }))
  for (const worker of workers) await worker.next()
  const counts = { served: 0, gaveUp: 0 }
  const end = now() + 600
  while (now() < end || counts.served === 0 || counts.gaveUp === 0) {
    await Promise.all(Array.from({ length: 5 }, async () => {
      const writes = random() < 0.4
      const controller = new TinyController({ reason: 'abort' })
      const result = lock[writes ? 'lockAsync' : 'lockSharedAsync']({ timeout: random() * 4, signal: controller.signal })
      if (random() < 0.5) setTimeout(controller.abort, random() * 3)
      let token
      try {
        token = await result
      } catch (error) {
        assert.ok(error === 'abort' || error.name === 'TimeoutError', String(error))
        counts.gaveUp++
        return
      }
      const before = writes ? Atomics.compareExchange(inside, 0, 0, -1) : Atomics.add(inside, 0, 1)
      assert.ok(writes ? before === 0 : before >= 0, `${writes ? 'writer' : 'reader'} met ${before} (seed ${seed})`)
      if (random() < 0.3) await turns(1)
      counts.served++
      if (writes) Atomics.store(inside, 0, 0)
      else Atomics.sub(inside, 0, 1)
      assert.strictEqual(token.unlock(), true)
    }))
  }
  Atomics.store(stop, 0, 1)
  for (const worker of workers) assert.ok(await worker.done() > 0)
  assert.deepStrictEqual([lock.locked, lock.readers, waiters(sab), inside[0]], [false, 0, 0, 0], `seed ${seed}`)
})

// ——— the rest ———

test('util.inspect tells the state and the number of waiters', () => {
  const { lock } = setUp()
  assert.strictEqual(util.inspect(lock), 'RwLock { locked: false, readers: 0, waiters: 0 }')
  const token = lock.tryLock()
  const controller = new TinyController()
  const waiting = rejection(lock.lockSharedAsync({ signal: controller.signal }))
  assert.strictEqual(util.inspect(lock), 'RwLock { locked: true, readers: 0, waiters: 1 }')
  controller.abort()
  const shared = token.downgrade()
  assert.strictEqual(util.inspect(lock), 'RwLock { locked: false, readers: 1, waiters: 0 }')
  shared.unlock()
  class Mine extends RwLock {}
  assert.ok(util.inspect(new Mine(new SharedArrayBuffer(4))).startsWith('Mine { locked: false'))
  return waiting
})

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
