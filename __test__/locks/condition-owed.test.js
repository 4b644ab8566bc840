'use strict'

// A Condition's notification is owed until its receiver's hold ends in order; otherwise it goes to another waiter.
// ends/condition-deaths.test.js has threads that end at any point.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { api } = require('../subject')
const { turns, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { startWorker, until } = require('../fixtures/queue-toolbox')

const { AsyncLock, Condition, RwLock } = api
const LOCKS = { AsyncLock, RwLock }

function setUp (Lock = AsyncLock) {
  const sab = new SharedArrayBuffer(16)
  const [condition, another] = [4, 8].map(byteOffset => new Condition(sab, { byteOffset }))
  return { sab, lock: new Lock(sab), condition, another }
}

/** Begins a wait with the lock: `{ token, result, state }`. */
function waiter ({ lock, condition }) {
  const token = lock.tryLock()
  const result = condition.waitAsync(token)
  return Object.assign(watch(result), { token, result })
}

/** Makes a token whose hold owes a notification, and a waiter. */
async function owing (it) {
  const mine = waiter(it)
  const other = waiter(it)
  assert.strictEqual(it.condition.notify(1), 1)
  assert.strictEqual(await mine.result, true)
  return { token: mine.token, other }
}

/** Notifies the waiter, which ends in order. */
async function release ({ condition }, { result, token }) {
  assert.strictEqual(condition.notify(), 1)
  assert.strictEqual(await result, true)
  assert.strictEqual(token.unlock(), true)
}

/** Checks that a waiter waits: all present grants have been seen. */
async function assertWaits (waiter) {
  await turns()
  assert.strictEqual(waiter.state, 'pending')
}

/** Lets the next holder fail: that concerns no waiter, if nothing is owed. */
async function assertNothingOwed (it, waiter) {
  it.lock.tryLock().abandon()
  await assertWaits(waiter)
}

// ——— ends that are failures ———

const failing = () => { throw new Error('on purpose') }

/** Each begins a wait that is notified, and fails after it. */
const FAILURES = {
  'abandon()': (it) => {
    const token = it.lock.tryLock()
    const result = it.condition.waitAsync(token)
    return { over: result.then(() => token.abandon()) }
  },
  'executeLocked, whose callback throws after its wait': (it) => failed(it.lock.executeLocked(async token => {
    await it.condition.waitAsync(token)
    failing()
  })),
  'executeLocked, whose predicate throws after its wait': (it) => failed(it.lock.executeLocked(token => {
    let asked = 0
    return it.condition.waitForAsync(token, () => ++asked > 1 && failing())
  })),
  'executeLocked, which saw a death': async (it) => {
    it.lock.tryLock().abandon()
    return failed(it.lock.executeLocked(async token => {
      assert.strictEqual(token.ownerDied, true)
      await it.condition.waitAsync(token)
      failing()
    }))
  }
}

const failed = promise => ({
  over: rejection(promise).then(({ message }) => assert.strictEqual(message, 'on purpose'))
})

for (const name of Object.keys(LOCKS)) {
  for (const how of Object.keys(FAILURES)) {
    test(`${name}: after ${how} the notification goes to another waiter`, async () => {
      const it = setUp(LOCKS[name])
      const { over } = await FAILURES[how](it)
      await until(() => it.condition.waiters === 1, 'it waits')
      const others = [waiter(it), waiter(it)]
      assert.strictEqual(it.condition.notify(1), 1)
      await over
      assert.strictEqual(await others[0].result, true)
      others[0].token.unlock()
      await assertWaits(others[1])
      await release(it, others[1])
    })
  }

  for (const how of ['throws', 'returns a promise']) {
    test(`${name}: after executeLockedSync whose callback ${how} the notification goes to another`, async t => {
      const it = setUp(LOCKS[name])
      const worker = startWorker(t, { sab: it.sab, name, how }, ({ api, data: { sab, name, how } }) => {
        const condition = new api.Condition(sab, { byteOffset: 4 })
        try {
          new api[name](sab).executeLockedSync(token => {
            condition.wait(token)
            if (how === 'throws') throw new TypeError('on purpose')
            return Promise.resolve()
          })
        } catch (error) {
          return error instanceof TypeError
        }
      })
      // It is enqueued before the lock is free.
      await until(() => it.condition.waiters === 1 && !it.lock.locked, 'it waits')
      const other = waiter(it)
      assert.strictEqual(it.condition.notify(1), 1)
      assert.strictEqual(await worker.done(), true)
      assert.strictEqual(await other.result, true)
      other.token.unlock()
    })
  }
}

test('it goes to another waiter once the lock is passed on: who has that first sees the death', async () => {
  const it = setUp()
  const { token, other } = await owing(it)
  const order = []
  const claim = it.lock.executeLocked(({ ownerDied }) => { order.push(['claim', ownerDied]) })
  token.abandon()
  await other.result
  order.push(['waiter', other.token.ownerDied])
  other.token.unlock()
  await claim
  assert.deepStrictEqual(order, [['claim', true], ['waiter', false]])
})

test('where nobody waits, it is over', async () => {
  const it = setUp()
  const { token, result } = waiter(it)
  it.condition.notify()
  await result
  token.abandon()
  const later = waiter(it)
  await assertWaits(later)
  await release(it, later)
})

// ——— ends in order ———

/** Each ends a hold that owes a notification. */
const ORDERLY = {
  'token.unlock()': (token) => token.unlock(),
  'lock.unlock()': (_, { lock }) => lock.unlock(),
  'the end of using': (token) => token[Symbol.dispose](),
  'downgrade()': (token) => {
    const reader = token.downgrade()
    assert.strictEqual(reader.locked, true)
    reader.unlock()
  },
  'the next wait, which times out': async (token, { condition }) => {
    assert.strictEqual(await condition.waitAsync(token, { timeout: 1 }), false)
    token.abandon()
  },
  'the next wait, on another condition': async (token, { another }) => {
    assert.strictEqual(await another.waitAsync(token, { timeout: 1 }), false)
    token.abandon()
  },
  'the next wait, which is aborted': async (token, { another }) => {
    const controller = new TinyController({ reason: 'abort' })
    const result = rejection(another.waitAsync(token, { signal: controller.signal }))
    controller.abort()
    assert.strictEqual(await result, 'abort')
    token.abandon()
  }
}

const ONLY = { 'lock.unlock()': AsyncLock, 'downgrade()': RwLock }
if (Symbol.dispose === undefined) delete ORDERLY['the end of using']

for (const name of Object.keys(LOCKS)) {
  for (const how of Object.keys(ORDERLY)) {
    if (![undefined, LOCKS[name]].includes(ONLY[how])) continue
    test(`${name}: ${how} ends what is owed`, async () => {
      const it = setUp(LOCKS[name])
      const { token, other } = await owing(it)
      await ORDERLY[how](token, it)
      await assertNothingOwed(it, other)
      await release(it, other)
    })
  }

  test(`${name}: a callback that succeeds ends what is owed`, async () => {
    const it = setUp(LOCKS[name])
    const done = it.lock.executeLocked(token => it.condition.waitAsync(token))
    const other = waiter(it)
    assert.strictEqual(it.condition.notify(1), 1)
    assert.strictEqual(await done, true)
    await assertNothingOwed(it, other)
    await release(it, other)
  })

  test(`${name}: a wait that times out, or is aborted, owes nothing`, async () => {
    const it = setUp(LOCKS[name])
    const controller = new TinyController({ reason: 'abort' })
    const late = it.lock.tryLock()
    const isLate = it.condition.waitAsync(late, { timeout: 1 })
    const aborted = it.lock.tryLock()
    const isAborted = rejection(it.condition.waitAsync(aborted, { signal: controller.signal }))
    const other = waiter(it)
    assert.strictEqual(await isLate, false)
    late.abandon()
    controller.abort()
    assert.strictEqual(await isAborted, 'abort')
    aborted.abandon()
    await assertWaits(other)
    await release(it, other)
  })
}

test('a wait with a timeout of 0, which keeps the lock, keeps the owed notification', async () => {
  const it = setUp()
  const { token, other } = await owing(it)
  assert.strictEqual(await it.another.waitAsync(token, { timeout: 0 }), false)
  token.abandon()
  assert.strictEqual(await other.result, true)
  other.token.unlock()
})

// ——— several ———

test('a hold owes one notification, and to the waiters of its condition', async () => {
  const it = setUp()
  const atAnother = { lock: it.lock, condition: it.another }
  const mine = waiter(it)
  const other = waiter(it)
  const others = [waiter(atAnother), waiter(atAnother)]
  assert.strictEqual(it.condition.notify(1), 1)
  await mine.result
  const { token } = mine
  // Behind those two, of which the second gets what the first owes.
  const again = it.another.waitAsync(token)
  assert.strictEqual(it.another.notify(1), 1)
  await others[0].result
  others[0].token.abandon()
  assert.strictEqual(await others[1].result, true)
  others[1].token.unlock()
  assert.strictEqual(it.another.notify(), 1)
  assert.strictEqual(await again, true)
  token.abandon()
  await assertWaits(other)
  await release(it, other)
})

test('each of many holds of a thread owes its own, wherever its entry has moved', async () => {
  const all = Array.from({ length: 40 }, () => ({ lock: new AsyncLock(), condition: new Condition() }))
  const owed = await Promise.all(all.map(owing))
  const claims = all.map(({ lock }) => lock.executeLocked(() => {}))
  owed.forEach(({ token }, n) => { if (n % 4 === 0) token.unlock() })
  owed.forEach(({ token }, n) => { if (n % 4 === 1) token.abandon() })
  await turns()
  owed.reverse().forEach(({ token }) => token.abandon())
  await Promise.all(claims)
  await turns()
  const states = owed.reverse().map(({ other }) => other.state)
  assert.deepStrictEqual(states, all.map((_, n) => n % 4 === 0 ? 'pending' : 'fulfilled'))
  all.forEach(({ condition }) => condition.notify())
  for (const { other } of owed) {
    await other.result
    other.token.unlock()
  }
})

// ——— how it is seen ———

test('what is owed appears in no snapshot, holder or count', async () => {
  const seen = ({ lock, condition }) => {
    const { held, waiting } = api.snapshot()
    const mine = ({ id }) => id === lock.id || id === condition.id
    const entries = held.filter(mine).map(entry => Object.assign({}, entry, { milliseconds: 0, id: 0 }))
    const counts = [lock.waiters, condition.waiters]
    return { entries, waiting: waiting.filter(mine).length, holder: lock.holder, counts, shown: util.inspect(lock) }
  }
  for (const Lock of [AsyncLock, RwLock]) {
    const [plain, it] = [setUp(Lock), setUp(Lock)]
    const bystander = waiter(plain)
    const token = plain.lock.tryLock()
    const owner = await owing(it)
    assert.strictEqual(seen(it).entries.length, 1)
    assert.deepStrictEqual(seen(it), seen(plain))
    for (const one of [token, owner.token]) one.unlock()
    assert.strictEqual(seen(it).entries.length, 0)
    await release(plain, bystander)
    await release(it, owner.other)
  }
})

test('a lock by its name is no holder', async () => {
  const { condition } = setUp()
  await api.locks.request('of a condition', async lock => {
    assert.strictEqual((await rejection(condition.waitAsync(lock))).name, 'TypeError')
  })
})
