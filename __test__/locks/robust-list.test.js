'use strict'

// The robust list: a token knows an index of it, at which its entry may be no more; others see attempts to take a lock.

const assert = require('assert')
const asyncHooks = require('async_hooks')
const { test } = require('../harness')
const { api: { AsyncLock, Condition, RwLock, Semaphore } } = require('../subject')
const { TinyController, memory, rejection } = require('../fixtures/lock-toolbox')
const { now, randomFrom, sleep, startWorker } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')
const theList = require('../../lib/holding/the-list')

const SEED = Number(process.env.SEED || Date.now() % 1e9)
console.log(`# seed ${SEED}`)

for (const way of ['the time is over', 'it is notified']) {
  test(`a token whose entry had moved is live after a wait, however many others have moved: ${way}`, async () => {
    const sab = memory(32)
    const [first, lock, one, other] = [0, 4, 8, 12].map(byteOffset => new AsyncLock(sab, { byteOffset }))
    const condition = new Condition(sab, { byteOffset: 16 })
    const before = first.tryLock()
    const token = lock.tryLock()
    // The last entry takes the place of the one that goes.
    before.unlock()
    const wait = condition.waitAsync(token, { timeout: way === 'it is notified' ? Infinity : 5 })
    await undefined
    for (let n = 0; n < 100; n++) {
      const [goes, moves] = [one, other].map(lock => lock.tryLock())
      goes.unlock()
      moves.unlock()
    }
    if (way === 'it is notified') condition.notify()
    assert.strictEqual(await wait, way === 'it is notified')
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(lock.locked, false)
  })
}

test('each token finds its entry, in whatever order the locks are taken and released', () => {
  const random = randomFrom(SEED)
  const sab = memory(4 * 50)
  const free = Array.from({ length: 50 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const held = []
  for (let turn = 0; turn < 5000; turn++) {
    // Whether there are many or few changes now and then.
    const takes = random() < (turn % 1000 < 500 ? 0.6 : 0.4)
    if (takes && free.length > 0) {
      const [lock] = free.splice(Math.floor(random() * free.length), 1)
      held.push({ lock, token: lock.tryLock() })
    } else if (held.length > 0) {
      const [{ lock, token }] = held.splice(Math.floor(random() * held.length), 1)
      if (random() < 0.5) assert.strictEqual(token.unlock(), true)
      else lock.unlock()
      assert.deepStrictEqual([lock.locked, token.locked], [false, false])
      free.push(lock)
    }
    for (const { lock, token } of held) assert.ok(token.locked && lock.locked)
  }
  for (const { token } of held) assert.strictEqual(token.unlock(), true)
})

test('whether a thread holds a lock is known, in whatever order locks and shares are taken and released', async () => {
  const random = randomFrom(SEED)
  const pick = list => Math.floor(random() * list.length)
  const sab = memory(4 * 420)
  const locks = Array.from({ length: 400 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const shared = Array.from({ length: 20 }, (_, n) => new RwLock(sab, { byteOffset: 1600 + 4 * n }))
  const list = theList()
  const first = locks[0].tryLock()
  const address = list.entries[0]
  first.unlock()
  const held = []
  for (let turn = 0; turn < 6000; turn++) {
    if (random() < (turn % 2000 < 1000 ? 0.7 : 0.3)) {
      const token = random() < 0.8 ? locks[pick(locks)].tryLock() : shared[pick(shared)].tryLockShared()
      if (token !== null) held.push(token)
    } else if (held.length > 0) {
      // The latest, the oldest, or any.
      const way = random()
      const [token] = held.splice(way < 0.4 ? held.length - 1 : way < 0.6 ? 0 : pick(held), 1)
      assert.strictEqual(token.unlock(), true)
    }
    // Others are claimed in the line, so that native code adds and removes the entries.
    if (turn % 500 === 499) held.push(await claimed(locks[pick(locks)]))
    for (let n = 0; n < 4; n++) {
      const wanted = address + 4 * Math.floor(random() * 420)
      const is = Array.from({ length: held.length }, (_, index) => list.entries[2 * index]).includes(wanted)
      const index = list.find(wanted)
      assert.strictEqual(index >= 0, is, `turn ${turn}`)
      assert.ok(!is || list.entries[2 * index] === wanted, `turn ${turn}`)
      assert.strictEqual(list.mayHold(wanted), is, `turn ${turn}`)
    }
  }
  for (const token of held) assert.strictEqual(token.unlock(), true)

  /** Returns the token of a claim: for it this thread releases its former one. */
  async function claimed (lock) {
    const former = lock.tryLock()
    const claim = lock.lockAsync()
    if (former === null) lock.unlock()
    else former.unlock()
    const token = await claim
    for (let n = held.length - 1; n >= 0; n--) if (!held[n].locked) held.splice(n, 1)
    return token
  }
})

test('a thread that has tried in vain to take a lock is not taken for its holder', async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  // By code that does not know the class, so that no holder is known.
  Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
  const worker = startWorker(t, sab, async ({ api, data, post, sleep }) => {
    const token = new api.AsyncLock(data).tryLock()
    post(token)
    await sleep(60000)
  })
  assert.strictEqual(await worker.next(), null)
  lock.unlock()
  assert.strictEqual(lock.locked, false)
})

test('a token whose lock was unlocked by unlock() of the lock, while there was a waiter, is not live', async () => {
  const lock = new AsyncLock(memory(4))
  const token = lock.tryLock()
  const next = lock.lockAsync()
  lock.unlock()
  assert.strictEqual(token.locked, false)
  assert.strictEqual(token.unlock(), false)
  assert.strictEqual((await next).unlock(), true)
})

// ——— a grant to a claim that has given up ———

/** Returns the promise of `call`; `act` is called within its settlement. */
function actingWhenSettled (t, call, act) {
  const ids = new Set()
  let calling = true
  const hook = asyncHooks.createHook({
    init (id, type) { if (calling && type === 'PROMISE') ids.add(id) },
    promiseResolve (id) {
      if (calling || !ids.has(id)) return
      hook.disable()
      act()
    }
  })
  t.after(() => hook.disable())
  hook.enable()
  const promise = call()
  calling = false
  return promise
}

test('permits that a batch brings to a claim that the same batch has made give up come back', async t => {
  const sab = memory(8)
  const [first, second] = [new Semaphore(sab), new Semaphore(sab, { byteOffset: 4 })]
  const { abort, signal } = new TinyController({ reason: 'given up' })
  const one = actingWhenSettled(t, () => first.acquireAsync(1), abort)
  const other = rejection(second.acquireAsync(3, { signal }))
  await sleep(0)
  first.release(1)
  second.release(3)
  await one
  assert.strictEqual(await other, 'given up')
  assert.strictEqual(second.available, 3)
})

test('locks of a dead thread that come in a batch which makes their claims give up: the next are told', async t => {
  const COUNT = 40
  const sab = memory(4 * COUNT)
  const locks = Array.from({ length: COUNT }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const inLine = new Int32Array(memory(4))
  const worker = startWorker(t, { sab, inLine, COUNT }, async ({ api, data: { sab, inLine, COUNT }, post, sleep }) => {
    // The last hold of a thread is passed on first.
    for (let n = COUNT - 1; n >= 0; n--) new api.AsyncLock(sab, { byteOffset: 4 * n }).tryLock()
    post('held')
    while (Atomics.load(inLine, 0) === 0) await sleep(1)
    process.exit()
  })
  worker.done().catch(() => {})
  await worker.next()
  const { abort, signal } = new TinyController({ reason: 'given up' })
  const first = actingWhenSettled(t, () => locks[0].lockAsync(), abort)
  const others = locks.slice(1).map(lock => rejection(lock.lockAsync({ signal })))
  Atomics.store(inLine, 0, 1)
  // Without an event loop until it is dead, so that all comes at once.
  const start = now()
  while (locks.some(lock => lock.locked)) assert(now() - start < slowness * 20000, 'it does not die')
  await first.then(token => token.unlock())
  await Promise.all(others)
  for (const lock of locks.slice(1)) {
    const token = lock.tryLock()
    assert.deepStrictEqual([token !== null, token && token.ownerDied], [true, true])
    token.unlock()
  }
})

// ——— Code of the user's that runs while something is acquired ———

/** Checks that each token is for its own lock, without any remains. */
function checkAndUnlock (tokens, locks) {
  for (const [n, token] of tokens.entries()) {
    assert.deepStrictEqual([token.locked, locks[n].locked], [true, true], `lock ${n}`)
    assert.strictEqual(token.unlock(), true)
    assert.deepStrictEqual([token.locked, locks[n].locked], [false, false], `lock ${n}`)
  }
  const refusal = { code: 'ERR_NOT_LOCKED', message: 'unlock: the lock is not held' }
  for (const lock of locks) assert.throws(() => lock.unlock(), refusal)
}

test('a signal that takes another lock while a claim is granted at once', async () => {
  const sab = memory(8)
  const locks = [0, 4].map(byteOffset => new AsyncLock(sab, { byteOffset }))
  const before = locks[0].tryLock()
  let taken
  const signal = {
    aborted: false,
    addEventListener () { before.unlock() },
    removeEventListener () { taken = locks[1].tryLock() }
  }
  const token = await locks[0].lockAsync({ signal })
  checkAndUnlock([token, taken], locks)
})

test('a token that releases another lock when it sees a death, in the midst of a batch', async () => {
  const sab = memory(24)
  const [other, later, ...locks] = [0, 4, 8, 12].map(byteOffset => new AsyncLock(sab, { byteOffset }))
  const conditions = [16, 20].map(byteOffset => new Condition(sab, { byteOffset }))
  const held = other.tryLock()
  const tokens = locks.map(lock => lock.tryLock())
  const waits = conditions.map((condition, n) => condition.waitAsync(tokens[n]))
  await undefined
  const taken = locks.map(lock => lock.tryLock())
  for (const condition of conditions) condition.notify()
  // Both claim their locks again.
  while (locks.some(lock => lock.waiters === 0)) await sleep(1)
  Object.defineProperty(tokens[0], 'ownerDied', { get: () => false, set: () => { held.unlock() } })
  for (const token of taken) token.unlock()
  assert.deepStrictEqual(await Promise.all(waits), [true, true])
  assert.strictEqual(other.locked, false)
  checkAndUnlock([later.tryLock(), ...tokens], [later, ...locks])
})
