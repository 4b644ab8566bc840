'use strict'

// Condition: waiting while holding a lock. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const size = require('../fixtures/size')
const { TURNS_ONCE_MORE, now, randomFrom, runChild, sleep, startWorker, until } = require('../fixtures/queue-toolbox')

const { AsyncLock, Condition, RwLock, Semaphore } = api

/** The byte offsets of the objects in the memory of a test. */
const LOCK = 0
const CONDITION = 4
const READY = 8

/** Both locks whose tokens a Condition takes. */
const LOCKS = { AsyncLock: [AsyncLock, 'lock'], RwLock: [RwLock, 'lock'] }

function setUp (Lock = AsyncLock) {
  const sab = new SharedArrayBuffer(12)
  const lock = new Lock(sab, { byteOffset: LOCK })
  const condition = new Condition(sab, { byteOffset: CONDITION })
  const word = new Int32Array(sab, CONDITION, 1)
  const ready = new Int32Array(sab, READY, 1)
  return { sab, lock, condition, word, ready, condTwin: new Condition(sab, { byteOffset: CONDITION }) }
}

const onLock = (member, name = 'AsyncLock') => member.on(name, LOCK)
const onCondition = (member) => member.on('Condition', CONDITION)
const TOKEN = { token: 'token' }

/** Runs `body({ api, lock, condition, token })` in a locking thread; gives its result. */
const inThread = (t, { sab }, body) => startWorker(t, sab, `({ api, data: sab }) => {
  const lock = new api.AsyncLock(sab)
  const condition = new api.Condition(sab, { byteOffset: ${CONDITION} })
  return (${body})({ api, lock, condition, token: lock.lock() })
}`).done()

/** Gives a getter that unlocks while it is read, as an option. */
const unlocking = (lock) => ({ get timeout () { lock.unlock(); return 1 } })

/** Lets a thread take the lock and wait: then the lock is free; `result` is that of the wait. */
async function waiting (member, { sab, lock }, form = 'wait', args = [], name = 'AsyncLock') {
  const before = waiters(sab, CONDITION)
  await onLock(member, name)('lockAsync')
  const result = onCondition(member)(form, TOKEN, ...args)
  // It is in the line before it gives the lock up.
  await untilWaiters(sab, CONDITION, before + 1)
  await until(() => !lock.locked, 'the lock is free while the thread waits')
  return { result }
}

// ——— waiting ———

for (const name of Object.keys(LOCKS)) {
  test(`${name}: wait unlocks, and returns with the lock held by the same token`, async t => {
    const it = setUp(api[name])
    const member = await startMember(t, it.sab)
    for (const form of ['wait', 'waitAsync']) {
      const { result } = await waiting(member, it, form, [], name)
      const token = it.lock.tryLock()
      assert.ok(token, 'the lock is free while they wait')
      assert.strictEqual(it.condition.notify(), 1)
      const watched = watch(result)
      await turns()
      assert.strictEqual(watched.state, 'pending', 'it returns with the lock only')
      token.unlock()
      assert.strictEqual(await result, true)
      assert.deepStrictEqual(await member.do('tellOfToken', 'token'), { ownerDied: false, locked: true })
      assert.strictEqual(it.lock.tryLock(), null)
      assert.strictEqual(await member.do('unlock', 'token'), true)
      assert.strictEqual(it.lock.locked, false)
      assert.strictEqual(await member.do('unlock', 'token'), false)
    }
  })

  test(`${name}: on main, waitAsync unlocks, and settles with the lock held by the same token`, async t => {
    const it = setUp(api[name])
    const member = await startMember(t, it.sab)
    const token = it.lock.tryLock()
    const result = it.condition.waitAsync(token)
    assert.strictEqual(token.locked, false)
    assert.strictEqual(it.lock.locked, false)
    await onLock(member, name)('lock')
    assert.strictEqual(await onCondition(member)('notify'), 1)
    await turns()
    assert.strictEqual(token.locked, false)
    await member.do('unlock', 'token')
    assert.strictEqual(await result, true)
    assert.strictEqual(token.locked, true)
    assert.strictEqual(it.lock.locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(it.lock.locked, false)
  })

  test(`${name}: the same token is live after every kind of end of a wait`, async t => {
    const it = setUp(api[name])
    const { lock, condition } = it
    const token = lock.tryLock()
    const live = () => {
      assert.strictEqual(token.locked, true)
      assert.strictEqual(lock.locked, true)
      assert.strictEqual(lock.tryLock(), null)
      assert.strictEqual(waiters(it.sab, CONDITION), 0)
    }
    for (const timeout of [0, -1, 3, -Infinity]) {
      assert.strictEqual(await condition.waitAsync(token, { timeout }), false)
      live()
      assert.strictEqual(await condition.waitForAsync(token, () => false, { timeout }), false)
      live()
      assert.strictEqual(await condition.waitForAsync(token, () => true, { timeout }), true)
      live()
    }
    const calls = [[condition.waitAsync], [condition.waitForAsync, () => false]]
    for (const [form, ...predicate] of calls) {
      const call = signal => form.call(condition, token, ...predicate, { signal })
      const controller = new TinyController({ reason: 'abort' })
      const result = rejection(call(controller.signal))
      await turns(1)
      assert.strictEqual(token.locked, false)
      controller.abort()
      assert.strictEqual(await result, 'abort')
      live()
      assert.strictEqual(await rejection(call(controller.signal)), 'abort')
      live()
    }
    const error = new Error('of the predicate')
    assert.strictEqual(await rejection(condition.waitForAsync(token, () => { throw error })), error)
    live()
    const notified = condition.waitAsync(token)
    assert.strictEqual(condition.notify(), 1)
    assert.strictEqual(await notified, true)
    live()
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(lock.locked, false)
  })
}

test('an abort rejects only once the lock is held again', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  const token = it.lock.tryLock()
  const controller = new TinyController({ reason: 'abort' })
  const result = watch(it.condition.waitAsync(token, { signal: controller.signal }))
  await onLock(member)('lock')
  controller.abort()
  assert.strictEqual(waiters(it.sab, CONDITION), 0)
  await turns()
  assert.strictEqual(result.state, 'pending')
  await member.do('unlock', 'token')
  await until(() => result.state !== 'pending')
  assert.deepStrictEqual(result, { state: 'rejected', value: 'abort' })
  assert.strictEqual(token.locked, true)
  token.unlock()
})

test('a timeout returns only once the lock is held again: blocking and awaiting', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  for (const form of ['wait', 'waitAsync']) {
    for (let timeout = 5, met = false; !met; timeout *= 4) {
      await onLock(member)('lock')
      const mine = it.lock.lockAsync()
      const locked = watch(mine)
      const result = onCondition(member)(form, TOKEN, { timeout })
      const watched = watch(result)
      await until(() => locked.state !== 'pending' || watched.state !== 'pending')
      // On a busy machine the time may be over before this thread comes to take the lock.
      met = watched.state === 'pending'
      if (met) {
        // It has left the condition's line and waits in that of the lock.
        await untilWaiters(it.sab, LOCK, 1)
        assert.strictEqual(waiters(it.sab, CONDITION), 0)
        await turns()
        assert.strictEqual(watched.state, 'pending')
        locked.value.unlock()
      }
      assert.strictEqual(await result, false)
      assert.strictEqual(await member.do('unlock', 'token'), true)
      if (!met) (await mine).unlock()
    }
  }
})

test('a wait with a timeout of 0 keeps the lock and never enters the line', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  await onLock(member)('lock')
  const others = it.lock.lockAsync()
  for (const form of ['wait', 'waitAsync']) {
    assert.strictEqual(await onCondition(member)(form, TOKEN, { timeout: 0 }), false)
    assert.strictEqual(waiters(it.sab, LOCK), 1, 'nobody got the lock meanwhile')
  }
  await member.do('unlock', 'token')
  ;(await others).unlock()
})

test('a lock that is unlocked meanwhile goes to its first claim, before the waiter has it again', async () => {
  const { lock, condition } = setUp()
  const order = []
  const token = lock.tryLock()
  const first = lock.executeLocked(() => { order.push('other'); condition.notify() })
  const result = condition.waitAsync(token).then(() => order.push('waiter'))
  await Promise.all([first, result])
  assert.deepStrictEqual(order, ['other', 'waiter'])
  token.unlock()
})

// ——— notify ———

test('notify wakes the first ones, blocked threads and promises in the order they came, and says how many', async t => {
  const it = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, it.sab)))
  const order = []
  const note = (name, { result }) => result.then(value => {
    assert.strictEqual(value, true)
    order.push(name)
  })
  const mine = async () => {
    const token = await it.lock.lockAsync()
    const result = it.condition.waitAsync(token).then(value => { token.unlock(); return value })
    return { result }
  }
  const all = []
  const theirs = async (member) => {
    const { result } = await waiting(member, it)
    return { result: result.then(async value => { await member.do('unlock', 'token'); return value }) }
  }
  all.push(note('thread 0', await theirs(members[0])))
  all.push(note('main 0', await mine()))
  all.push(note('thread 1', await theirs(members[1])))
  all.push(note('main 1', await mine()))
  all.push(note('main 2', await mine()))
  assert.strictEqual(waiters(it.sab, CONDITION), 5)
  assert.strictEqual(it.condition.notify(0), 0)
  assert.strictEqual(it.condition.notify(-0), 0)
  for (const n of [0, 1]) {
    assert.strictEqual(it.condTwin.notify(1), 1)
    await all[n]
    await turns()
    assert.strictEqual(order.length, n + 1)
  }
  assert.strictEqual(it.condition.notify(2), 2)
  await Promise.all(all.slice(0, 4))
  assert.strictEqual(order.length, 4)
  assert.strictEqual(it.condition.notify(), 1)
  await all[4]
  assert.deepStrictEqual(order.slice(0, 2), ['thread 0', 'main 0'])
  assert.deepStrictEqual(order.slice(2, 4).sort(), ['main 1', 'thread 1'])
  for (const count of [undefined, Infinity, 1]) assert.strictEqual(it.condition.notify(count), 0)
  assert.strictEqual(it.lock.locked, false)
})

test('notify needs no lock, and a wrong count is a TypeError that wakes no waiter', async () => {
  const { sab, lock, condition } = setUp()
  const token = lock.tryLock()
  const result = condition.waitAsync(token)
  const converted = { valueOf: () => assert.fail('it was converted') }
  const message = /^notify: count must be a non-negative integer or Infinity, not /
  for (const count of [Symbol('s'), converted, '1', null, NaN, 1.5, -1, -Infinity, true]) {
    assert.throws(() => condition.notify(count), { name: 'TypeError', message })
    assert.strictEqual(waiters(sab, CONDITION), 1)
  }
  assert.strictEqual(condition.notify(1), 1)
  assert.strictEqual(await result, true)
  token.unlock()
})

test('the word is not written, and its value does not matter', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  for (const value of [0, 1, -1, 0x7fffffff]) {
    Atomics.store(it.word, 0, value)
    const { result } = await waiting(member, it)
    const token = it.lock.tryLock()
    const mine = it.condition.waitAsync(token).then(served => { token.unlock(); return served })
    assert.strictEqual(it.condition.notify(), 2)
    assert.strictEqual(await result, true)
    await member.do('unlock', 'token')
    assert.strictEqual(await mine, true)
    assert.strictEqual(it.word[0], value)
  }
})

// ——— waitFor ———

test('waitFor calls its predicate first, and again after each notification, with the lock held', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  const predicate = { word: READY, is: 3 }
  for (const form of ['waitFor', 'waitForAsync']) {
    Atomics.store(it.ready, 0, 3)
    await onLock(member)('lock')
    assert.strictEqual(await onCondition(member)(form, TOKEN, predicate), true, 'no wait is needed')
    await member.do('unlock', 'token')

    Atomics.store(it.ready, 0, 0)
    const { result } = await waiting(member, it, form, [predicate])
    const watched = watch(result)
    for (let n = 1; n <= 3; n++) {
      const token = await it.lock.lockAsync()
      Atomics.store(it.ready, 0, n)
      assert.strictEqual(it.condition.notify(), 1)
      token.unlock()
      if (n < 3) await untilWaiters(it.sab, CONDITION, 1)
      if (n < 3) assert.strictEqual(watched.state, 'pending')
    }
    assert.strictEqual(await result, true)
    await member.do('unlock', 'token')
  }
})

test('waitForAsync: the predicate may be asynchronous, and runs with the lock held', async () => {
  const { sab, lock, condition } = setUp()
  const token = lock.tryLock()
  let asked = 0
  const result = condition.waitForAsync(token, async () => {
    assert.strictEqual(token.locked, true)
    await sleep(1)
    assert.strictEqual(token.locked, true)
    return ++asked === 3 ? 'yes' : ''
  })
  for (let n = 0; n < 2; n++) {
    await untilWaiters(sab, CONDITION, 1)
    condition.notify()
  }
  assert.strictEqual(await result, true)
  assert.strictEqual(asked, 3)
  token.unlock()
})

test('waitFor: the timeout covers all waits, and at its end the predicate decides', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  for (const form of ['waitFor', 'waitForAsync']) {
    // On a busy machine the time may be over before this thread has notified.
    for (let notified = 0; notified === 0;) {
      await onLock(member)('lock')
      const start = now()
      const result = watch(onCondition(member)(form, TOKEN, { word: READY, is: 9 }, { timeout: 300 }))
      while (result.state === 'pending') {
        notified += it.condition.notify()
        await turns(1)
      }
      assert.deepStrictEqual(result, { state: 'fulfilled', value: false })
      assert.ok(now() - start >= 300)
      await member.do('unlock', 'token')
    }
  }
})

test('waitFor: a predicate that came true without a notification is seen when the time is over', async t => {
  const it = setUp()
  assert.deepStrictEqual(await inThread(t, it, ({ condition, token }) => {
    let asked = 0
    return [condition.waitFor(token, () => ++asked === 2, { timeout: 5 }), asked, token.unlock()]
  }), [true, 2, true])
  const token = it.lock.tryLock()
  let asked = 0
  assert.strictEqual(await it.condition.waitForAsync(token, () => ++asked === 2, { timeout: 5 }), true)
  token.unlock()
})

test('waitFor: an error of the predicate is thrown, a promise is a TypeError; the lock is still held', async t => {
  assert.deepStrictEqual(await inThread(t, setUp(), ({ condition, token }) => {
    const mine = new RangeError('of the predicate')
    const then = () => {}
    const thenables = [async () => false, async () => true, () => ({ then }), () => Object.assign(() => {}, { then })]
    const outcomes = [() => { throw mine }, ...thenables].map(predicate => {
      try {
        return condition.waitFor(token, predicate)
      } catch (error) {
        return `${error === mine || error.name} ${token.locked}`
      }
    })
    let begun = false
    try { condition.waitFor(token, async () => { begun = true }) } catch (_) {}
    outcomes.push(begun)
    // A value that is no promise is truthy or not.
    const values = [condition.waitFor(token, () => ({ then: 1 })), condition.waitFor(token, () => 0, { timeout: 1 })]
    return outcomes.concat(values, token.unlock())
  }), ['true true', ...new Array(4).fill('TypeError true'), false, true, false, true])
})

test('a token that the predicate, or an option, has unlocked is not waited with', async t => {
  const it = setUp()
  const { lock, condition } = it
  const other = new AsyncLock(new SharedArrayBuffer(4)).tryLock()
  const token = lock.tryLock()
  const waits = [
    () => condition.waitForAsync(token, () => { token.unlock(); return false }),
    () => condition.waitAsync(lock.tryLock(), unlocking(lock))
  ]
  for (const wait of waits) {
    assert.strictEqual((await rejection(wait())).code, 'ERR_NOT_LOCKED')
    assert.strictEqual(lock.locked, false)
  }
  const outcomes = await inThread(t, it, `({ api, lock, condition, token }) => {
    const other = new api.AsyncLock(new SharedArrayBuffer(4))
    const kept = other.lock()
    const outcomes = []
    for (const wait of [
      () => condition.waitFor(token, () => { token.unlock(); return false }),
      () => condition.wait(lock.lock(), (${unlocking})(lock))
    ]) {
      try {
        outcomes.push(wait())
      } catch (error) {
        outcomes.push(error.code, lock.locked)
      }
    }
    return outcomes.concat(kept.unlock(), other.locked)
  }`)
  assert.deepStrictEqual(outcomes, ['ERR_NOT_LOCKED', false, 'ERR_NOT_LOCKED', false, true, false])
  assert.strictEqual(other.unlock(), true)
  assert.strictEqual(waiters(it.sab, CONDITION), 0)
})

// ——— arguments ———

/** The forms that await, as `(condition, token) => promise`. */
const AWAITING = {
  waitAsync: (condition, token) => condition.waitAsync(token),
  waitForAsync: (condition, token) => condition.waitForAsync(token, () => false)
}

test('a value that is no live, exclusive token is refused, and nothing changes', async t => {
  const it = setUp()
  const { lock, condition, sab } = it
  const rw = new RwLock(new SharedArrayBuffer(4))
  const shared = rw.tryLockShared()
  const permit = new Semaphore(new SharedArrayBuffer(4), { permits: 1 }).tryHold()
  const used = lock.tryLock()
  used.unlock()
  const values = [[undefined, 'undefined'], [null, 'null'], [{}, 'an object'], [lock, 'an object'], [7, 'the number 7']]
  const wrong = values.concat([shared, permit].map(token => [token, 'of a share, of permits or of a name']))
  for (const name of Object.keys(AWAITING)) {
    const call = token => AWAITING[name](condition, token)
    const beginning = `${name}: token must be the UnlockToken of a lock that is held exclusively, not `
    for (const [token, what] of wrong) {
      const error = await rejection(call(token))
      assert.deepStrictEqual([error.name, error.message], ['TypeError', beginning + what])
    }
    const error = await rejection(call(used))
    assert.strictEqual(error.code, 'ERR_NOT_LOCKED')
    assert.strictEqual(error.message, `${name}: the token's lock is not held`)
  }
  assert.deepStrictEqual([shared.unlock(), permit.unlock()], [true, true])
  for (const predicate of [undefined, null, {}, 'f']) {
    const token = lock.tryLock()
    const error = await rejection(condition.waitForAsync(token, predicate))
    assert.ok(error instanceof TypeError)
    assert.ok(/^waitForAsync: predicate must be a function, not /.test(error.message), error.message)
    assert.strictEqual(token.unlock(), true)
  }
  const member = await startMember(t, sab)
  await onLock(member)('lock')
  for (const form of ['wait', 'waitFor']) {
    const error = await rejection(onCondition(member)(form, 'token', { word: READY, is: 0 }))
    assert.strictEqual(error.name, 'TypeError')
    assert.ok(error.message.startsWith(`${form}: token must be `), error.message)
  }
  const error = await rejection(onCondition(member)('waitFor', TOKEN, 'predicate'))
  assert.strictEqual(error.name, 'TypeError')
  await member.do('unlock', 'token')
  assert.strictEqual((await rejection(onCondition(member)('wait', TOKEN))).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(waiters(sab, CONDITION), 0)
})

test('one token cannot wait twice at a time', async () => {
  const { lock, condition } = setUp()
  const token = lock.tryLock()
  const result = condition.waitAsync(token)
  assert.strictEqual((await rejection(condition.waitAsync(token))).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(condition.notify(), 1)
  assert.strictEqual(await result, true)
  assert.strictEqual(token.unlock(), true)
})

// ——— a token that is given back while a promise waits with it ———

/** How the token comes to its end while the promise is pending; `begin` begins the wait. */
const ENDS = {
  'the callback ends': (lock, begin) => lock.executeLocked(begin),
  'an asynchronous callback ends': (lock, begin) => lock.executeLocked(async token => {
    begin(token)
    await turns()
  }),
  'the callback throws': (lock, begin) => rejection(lock.executeLocked(token => {
    begin(token)
    throw new Error('mine')
  })),
  async 'it is unlocked' (lock, begin) {
    const token = lock.tryLock()
    begin(token)
    await turns()
    assert.strictEqual(token.unlock(), false)
  }
}
if (typeof Symbol.dispose === 'symbol') {
  ENDS['it is disposed of'] = async (lock, begin) => {
    const token = lock.tryLock()
    begin(token)
    await turns()
    token[Symbol.dispose]()
  }
}

for (const name of Object.keys(LOCKS)) {
  for (const form of Object.keys(AWAITING)) {
    for (const end of Object.keys(ENDS)) {
      test(`${name}, ${form}: once ${end}, the lock stays free, and the notification is another's`, async () => {
        const it = setUp(api[name])
        let token, result
        await ENDS[end](it.lock, each => {
          token = each
          result = rejection(AWAITING[form](it.condition, each))
        })
        assert.strictEqual((await result).code, 'ERR_NOT_LOCKED')
        assert.deepStrictEqual([waiters(it.sab, CONDITION), token.locked, it.lock.locked], [0, false, false])
        assert.deepStrictEqual([it.condition.notify(), token.unlock(), it.lock.locked], [0, false, false])
      })
    }
  }
}

test('a notification that comes as the token ends goes to the next waiter', async () => {
  const { lock, condition, sab } = setUp()
  let ended
  const callback = lock.executeLocked(token => {
    ended = rejection(condition.waitAsync(token))
    const other = lock.tryLock()
    // A pending wait first, then one that has been notified, whose promise settles after the callback has ended.
    assert.notStrictEqual(other, null)
    const next = condition.waitAsync(other)
    assert.strictEqual(condition.notify(1), 1)
    return { next }
  })
  const { next } = await callback
  assert.strictEqual((await ended).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(await next, true)
  assert.strictEqual(waiters(sab, CONDITION), 0)
})

for (const name of Object.keys(LOCKS)) {
  for (const when of ['waits for the lock', 'is about to have the lock']) {
    test(`${name}: a token that ends as its notified promise ${when}: it goes to the next waiter`, async () => {
      const { lock, condition, sab } = setUp(api[name])
      const token = lock.tryLock()
      const ended = rejection(condition.waitAsync(token))
      const other = lock.tryLock()
      const next = watch(condition.waitAsync(other))
      const holder = lock.tryLock()
      assert.strictEqual(condition.notify(1), 1)
      await untilWaiters(sab, LOCK, 1)
      await turns()
      // The lock goes to the promise, which settles in a later turn.
      if (when.startsWith('is')) holder.unlock()
      assert.strictEqual(token.unlock(), false)
      assert.strictEqual((await ended).code, 'ERR_NOT_LOCKED')
      if (when.startsWith('waits')) {
        assert.deepStrictEqual([waiters(sab, CONDITION), next.state], [0, 'pending'])
        holder.unlock()
      }
      await until(() => next.state !== 'pending', 'the other has the lock')
      assert.deepStrictEqual(next, { state: 'fulfilled', value: true })
      assert.deepStrictEqual([token.locked, other.unlock(), lock.locked], [false, true, false])
    })
  }
}

test('the end of a callback does not touch a wait that is over by then', async () => {
  const { lock, condition } = setUp()
  let result
  await lock.executeLocked(async token => {
    result = condition.waitAsync(token, { timeout: 1 })
    assert.strictEqual(await result, false)
    assert.strictEqual(token.locked, true)
  })
  assert.strictEqual(await result, false)
  assert.strictEqual(lock.locked, false)
})

test('one condition may be used with several locks, and one lock with several conditions', async () => {
  const sab = new SharedArrayBuffer(16)
  const [one, other] = [new AsyncLock(sab), new RwLock(sab, { byteOffset: 4 })]
  const [a, b] = [new Condition(sab, { byteOffset: 8 }), new Condition(sab, { byteOffset: 12 })]
  const tokens = [one.tryLock(), other.tryLock()]
  const results = tokens.map(token => a.waitAsync(token))
  const third = one.tryLock()
  const elsewhere = watch(b.waitAsync(third))
  assert.strictEqual(a.notify(), 2)
  assert.deepStrictEqual(await Promise.all(results), [true, true])
  await turns()
  assert.strictEqual(elsewhere.state, 'pending', 'a notification of one condition is none of the other')
  tokens.forEach(token => token.unlock())
  assert.strictEqual(b.notify(), 1)
  await until(() => elsewhere.state !== 'pending')
  third.unlock()
})

// ——— a thread that waits for itself ———

test('blocking while the thread itself awaits the lock is ERR_DEADLOCK, and the lock stays held', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  await onLock(member)('lock')
  const awaited = onLock(member)('lockAsync as other')
  await untilWaiters(it.sab, LOCK, 1)
  for (const options of [[], [{ timeout: 10 }]]) {
    for (const [form, ...predicate] of [['wait'], ['waitFor', { word: READY, is: 1 }]]) {
      const error = await rejection(onCondition(member)(form, TOKEN, ...predicate, ...options))
      assert.strictEqual(error.code, 'ERR_DEADLOCK')
      assert.ok(error.isError)
      assert.deepStrictEqual(await member.do('tellOfToken', 'token'), { ownerDied: false, locked: true })
    }
  }
  // It may await what it awaits.
  const result = onCondition(member)('waitAsync', TOKEN)
  assert.strictEqual((await awaited).locked, true)
  assert.strictEqual(it.condition.notify(), 1)
  await member.do('unlock', 'other')
  assert.strictEqual(await result, true)
  await member.do('unlock', 'token')
})

// ——— one step with respect to notify ———

// The waiter is in the line before the lock is free: a thread that takes the lock and notifies finds it.
test('no wake-up is lost between unlocking and waiting: under load from both sides', { timeout: 120000 }, async t => {
  const ROUNDS = 2000
  const sab = new SharedArrayBuffer(12)
  // Passes a turn back and forth; each side waits for its own, without a timeout, and notifies one.
  const player = ({ api, data: { sab, rounds, me } }) => {
    const lock = new api.AsyncLock(sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    const turn = new Int32Array(sab, 8, 1)
    for (let n = 0; n < rounds; n++) {
      const token = lock.lock()
      while (turn[0] !== me) if (!condition.wait(token)) throw new Error('a wait without a timeout was over')
      turn[0] = 1 - me
      if (n % 2) condition.notify(1)
      token.unlock()
      // With the lock and without.
      if (n % 2 === 0) condition.notify(1)
    }
    return 'played'
  }
  const workers = [0, 1].map(me => startWorker(t, { sab, rounds: ROUNDS, me }, player))
  for (const worker of workers) assert.strictEqual(await worker.done(), 'played')
  assert.strictEqual(waiters(sab, CONDITION), 0)
})

// Timeouts, aborts and notifications meet: each notification that was counted is a wait that gave true.
test('each notification is one wait that gives true, also beside timeouts and aborts', { timeout: 120000 }, async t => {
  const seed = 77
  const random = randomFrom(seed)
  const it = setUp()
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const waiter = async ({ api, randomFrom, data: { sab, stop, seed, awaits } }) => {
    const random = randomFrom(seed)
    const lock = new api.AsyncLock(sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    let notified = 0
    while (Atomics.load(stop, 0) === 0) {
      const token = awaits ? await lock.lockAsync() : lock.lock()
      const options = { timeout: random() * 3 }
      if (awaits ? await condition.waitAsync(token, options) : condition.wait(token, options)) notified++
      token.unlock()
    }
    return notified
  }
  const dataOf = (awaits, n) => ({ sab: it.sab, stop, seed: seed + n, awaits })
  const workers = [false, true].map((awaits, n) => startWorker(t, dataOf(awaits, n), waiter))
  let [counted, notified, aborted] = [0, 0, 0]
  const mine = async () => {
    const controller = new TinyController({ reason: 'abort' })
    const token = await it.lock.lockAsync()
    const result = it.condition.waitAsync(token, { timeout: 1 + random() * 3, signal: controller.signal })
    if (random() < 0.5) setTimeout(controller.abort, random() * 3)
    try {
      if (await result) notified++
    } catch (reason) {
      assert.strictEqual(reason, 'abort')
      aborted++
    }
    assert.strictEqual(token.unlock(), true)
  }
  const end = now() + size(1000, 500)
  let running = 0
  while (now() < end || counted <= 10 || aborted === 0) {
    if (running < 4) {
      running++
      mine().then(() => { running-- })
    }
    counted += it.condition.notify(1 + Math.floor(random() * 2))
    await (random() < 0.5 ? sleep(random() * 2) : turns(1))
  }
  Atomics.store(stop, 0, 1)
  await until(() => running === 0)
  for (const worker of workers) notified += await worker.done()
  assert.strictEqual(notified, counted, `seed ${seed}`)
  assert.strictEqual(it.lock.locked, false)
})

// ——— a thread that dies ———

test('a thread that dies while it waits is no longer there to be notified', async t => {
  const it = setUp()
  for (const form of ['wait', 'waitAsync']) {
    const member = await startMember(t, it.sab)
    await waiting(member, it, form)
    const token = await it.lock.lockAsync()
    const mine = it.condition.waitAsync(token)
    await member.terminate()
    assert.strictEqual(waiters(it.sab, CONDITION), 1)
    assert.strictEqual(it.lock.locked, false)
    assert.strictEqual(it.condition.notify(1), 1)
    assert.strictEqual(await mine, true)
    assert.strictEqual(token.ownerDied, false, 'it died without the lock')
    token.unlock()
  }
})

for (const form of ['wait', 'waitAsync', 'waitFor', 'waitForAsync']) {
  // Every notifier holds the lock, so a notified waiter always waits for the lock next.
  test(`${form}: the notification of a thread that dies before it has the lock again goes to the next`, async t => {
    const it = setUp()
    const other = await startMember(t, it.sab)
    const predicate = form.startsWith('waitFor') ? [{ word: READY, is: 1 }] : []
    for (const waits of [false, true]) {
      const victim = await startMember(t, it.sab)
      Atomics.store(it.ready, 0, 0)
      await waiting(victim, it, form, predicate)
      const { result } = await waiting(other, it, 'wait')
      const token = await it.lock.lockAsync()
      Atomics.store(it.ready, 0, 1)
      assert.strictEqual(it.condition.notify(1), 1)
      // At once, and when it waits in the line of the lock.
      if (waits) await untilWaiters(it.sab, LOCK, 1)
      await victim.terminate()
      token.unlock()
      assert.strictEqual(await result, true, 'the other one was woken')
      await other.do('unlock', 'token')
      assert.deepStrictEqual([waiters(it.sab, CONDITION), it.lock.locked], [0, false])
    }
  })
}

test('the notification of a busy thread that dies goes to the next waiter', { skip: TURNS_ONCE_MORE }, async t => {
  const it = setUp()
  const [victim, other] = await Promise.all([startMember(t, it.sab), startMember(t, it.sab)])
  await onLock(victim)('lock')
  victim.do('beginAndBeBusy', 'call', ['Condition', CONDITION, {}, 'waitAsync', [TOKEN]], 1, 2)
  await victim.untilSet(1)
  const { result } = await waiting(other, it, 'wait')
  assert.strictEqual(it.condition.notify(1), 1)
  assert.strictEqual(waiters(it.sab, CONDITION), 1)
  await victim.terminate()
  assert.strictEqual(victim.isSet(0), false)
  assert.strictEqual(await result, true)
  await other.do('unlock', 'token')
})

test('the notification of a thread that dies with the lock goes to the next waiter, which is told', async t => {
  const it = setUp()
  const other = await startMember(t, it.sab)
  for (const form of ['wait', 'waitAsync']) {
    const victim = await startMember(t, it.sab)
    const first = await waiting(victim, it, form)
    const second = await waiting(other, it, form)
    assert.strictEqual(it.condition.notify(1), 1)
    assert.strictEqual(await first.result, true)
    assert.strictEqual(waiters(it.sab, CONDITION), 1, 'nobody else was woken')
    await victim.terminate()
    assert.strictEqual(await second.result, true)
    assert.deepStrictEqual(await other.do('tellOfToken', 'token'), { ownerDied: true, locked: true })
    assert.strictEqual(await other.do('unlock', 'token'), true)
    const token = it.lock.tryLock()
    assert.strictEqual(token.ownerDied, false)
    token.unlock()
  }
})

test('the token of a waiter says that a holder has died meanwhile', async t => {
  for (const name of Object.keys(LOCKS)) {
    const it = setUp(api[name])
    const [victim, other] = await Promise.all([startMember(t, it.sab), startMember(t, it.sab)])
    const { result } = await waiting(other, it, 'wait', [], name)
    const token = it.lock.tryLock()
    const mine = it.condition.waitAsync(token)
    await onLock(victim, name)('lock')
    assert.strictEqual(await onCondition(victim)('notify', 1), 1)
    await victim.terminate()
    assert.strictEqual(await result, true)
    assert.deepStrictEqual(await other.do('tellOfToken', 'token'), { ownerDied: true, locked: true })
    await other.do('unlock', 'token')
    assert.strictEqual(it.condition.notify(), 1)
    assert.strictEqual(await mine, true)
    assert.strictEqual(token.ownerDied, false, 'only the next one sees the death')
    token.unlock()
    await other.terminate()
  }
})

test('the end of a thread that has used a condition wakes no waiter', async t => {
  const it = setUp()
  const member = await startMember(t, it.sab)
  const token = it.lock.tryLock()
  const mine = watch(it.condition.waitAsync(token))
  await onCondition(member)('notify', 0)
  await onLock(member)('tryLock')
  await onCondition(member)('wait', TOKEN, { timeout: 1 })
  await member.do('unlock', 'token')
  await member.terminate()
  await turns()
  assert.strictEqual(mine.state, 'pending')
  const other = await startMember(t, it.sab)
  await waiting(other, it, 'wait')
  await other.terminate()
  await turns()
  assert.strictEqual(mine.state, 'pending')
  assert.strictEqual(it.condition.notify(), 1)
  await until(() => mine.state === 'fulfilled')
  token.unlock()
})

// Consumers are terminated at any moment; each item is notified of once. No item is left over while a consumer waits.
test('no item is left behind by consumers that die at any moment', { timeout: 120000 }, async t => {
  const seed = 5
  const random = randomFrom(seed)
  const it = setUp()
  const consume = ({ api, data: { sab } }) => {
    const lock = new api.AsyncLock(sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    const items = new Int32Array(sab, 8, 1)
    for (;;) {
      const token = lock.lock()
      condition.waitFor(token, () => Atomics.load(items, 0) !== 0)
      const value = Atomics.load(items, 0)
      if (value < 0) {
        token.unlock()
        return
      }
      Atomics.store(items, 0, value - 1)
      token.unlock()
    }
  }
  const survivor = startWorker(t, { sab: it.sab }, consume)
  await untilWaiters(it.sab, CONDITION, 1)
  const end = now() + size(1500, 500)
  for (let round = 0; now() < end || round < 4; round++) {
    const victim = startWorker(t, { sab: it.sab }, consume)
    victim.done().catch(() => {})
    await until(() => waiters(it.sab, CONDITION) === 2, 'both wait')
    for (let n = Math.floor(random() * 4); n >= 0; n--) {
      await it.lock.executeLocked(() => {
        Atomics.add(it.ready, 0, 1)
        it.condition.notify(1)
      })
    }
    victim.worker.terminate()
    // Without a notification for each, some would stay here: the survivor sleeps.
    await until(() => Atomics.load(it.ready, 0) === 0, `nothing is left (seed ${seed}, round ${round})`)
    await victim.exited
  }
  await it.lock.executeLocked(() => {
    Atomics.store(it.ready, 0, -1)
    it.condition.notify()
  })
  await survivor.done()
})

// ——— the rest ———

test('a thread that only waits ends when the process does', async t => {
  const start = now()
  const { code, stderr } = await runChild(t, async ({ api, startWorker, until }) => {
    const sab = new SharedArrayBuffer(8)
    startWorker(sab, ({ api, data }) => {
      const token = new api.AsyncLock(data).lock()
      new api.Condition(data, { byteOffset: 4 }).wait(token)
    })
    await until(() => api.waiterCount(new Int32Array(sab), 1) === 1)
    process.exit(7)
  }, null)
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 7)
  assert.ok(now() - start < 20000)
})

test('two waits with one token, one of which begins as the other ends: both reject after executeLocked', async () => {
  const { sab, lock, condition, ready } = setUp()
  let second
  await lock.executeLocked(async token => {
    const wait = condition.waitAsync(token)
    const begins = (async () => {
      await api.waitAsync(ready, 0, 0).value
      assert.strictEqual(token.locked, true)
      second = condition.waitAsync(token)
      second.catch(() => {})
    })()
    // In one batch: the token is locked again when the other task goes on.
    api.notify(ready, 0)
    condition.notify()
    await Promise.all([wait, begins])
  })
  assert.strictEqual((await rejection(second)).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(waiters(sab, CONDITION), 0)
})

test('waitForAsync whose token is unlocked while the predicate is awaited rejects', async () => {
  const { lock, condition } = setUp()
  let answer, result
  const answered = new Promise(resolve => { answer = resolve })
  await lock.executeLocked(token => { result = condition.waitForAsync(token, () => answered) })
  answer(true)
  assert.strictEqual((await rejection(result)).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(lock.locked, false)
})

/** How often a wait is interrupted. */
const ROUNDS = size(1000, 300)

test('a wait that a time limit of vm interrupts takes no notification from others', { timeout: 60000 }, async t => {
  const { sab, word } = setUp()
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const notifier = startWorker(t, { sab, stop }, ({ api, data: { sab, stop } }) => {
    const condition = new api.Condition(sab, { byteOffset: 4 })
    while (Atomics.load(stop, 0) === 0) condition.notify()
  })
  const waiting = startWorker(t, { sab, rounds: ROUNDS }, async ({ api, data, post, receive, require }) => {
    const vm = require('vm')
    const { sab, rounds } = data
    const [lock, condition] = [new api.AsyncLock(sab), new api.Condition(sab, { byteOffset: 4 })]
    const context = vm.createContext({ lock, condition })
    const script = new vm.Script(`
      if (lock.locked) lock.unlock()
      for (;;) {
        const token = lock.lock()
        condition.wait(token)
        token.unlock()
      }`)
    for (let round = 0; round < rounds; round++) {
      try {
        script.runInContext(context, { timeout: 3 })
      } catch (error) {
        if (!/timed out/.test(error.message)) throw error
      }
      post('interrupted')
      // A thread that is interrupted must not need another call of the package.
      await receive()
    }
    return 'done'
  })
  let left = 0
  for (let round = 0; round < ROUNDS; round++) {
    await waiting.next()
    left += api.waiterCount(word, 0)
    waiting.worker.postMessage('go on')
  }
  assert.strictEqual(await waiting.done(), 'done')
  Atomics.store(stop, 0, 1)
  await notifier.done()
  assert.strictEqual(left, 0)
})
