'use strict'

// lock.holder and x.waiters: the thread that holds a lock, and how many wait.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { NAMES, create, optionsOf } = require('../../fixtures/every-class')
const { startMember, untilWaiters, watch } = require('../../fixtures/family-toolbox')
const { TinyController, newLock, rejection } = require('../../fixtures/lock-toolbox')
const { startWorker, until } = require('../../fixtures/queue-toolbox')

const MAIN = 0

for (const name of ['AsyncLock', 'RwLock']) {
  const setUp = () => {
    const { sab } = newLock()
    return { sab, lock: new api[name](sab), word: new Int32Array(sab) }
  }

  test(`${name}: the holder is a threadId while it is held, by main or a worker, and otherwise null`, async t => {
    const { sab, lock } = setUp()
    const member = await startMember(t, sab)
    assert.strictEqual(lock.holder, null)
    const token = lock.tryLock()
    assert.strictEqual(lock.holder, MAIN)
    const taken = member.on(name)('lock')
    await untilWaiters(sab, 0, 1)
    assert.strictEqual(lock.holder, MAIN)
    token.unlock()
    await taken
    assert.strictEqual(lock.holder, member.threadId)
    assert.strictEqual(new api[name](sab).holder, member.threadId)
    await member.do('unlock', 'token')
    assert.strictEqual(lock.holder, null)
  })

  test(`${name}: what is on its way to a promise of a busy thread has a holder`, async t => {
    const { sab, lock } = setUp()
    const member = await startMember(t, sab)
    const token = lock.tryLock()
    member.do('beginAndBeBusy', 'call', [name, 0, {}, 'lockAsync', []], 1, 2)
    await member.untilSet(1)
    token.unlock()
    // An AsyncLock's is woken and retries; only another's turn or its own makes it the holder.
    assert.ok([null, member.threadId].includes(lock.holder))
    member.set(2)
    await member.untilSet(0)
    assert.strictEqual(lock.holder, member.threadId)
  })

  test(`${name}: a dead thread is no holder, the next one is`, async t => {
    const { sab, lock } = setUp()
    const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
    await victim.on(name)('lock')
    const next = member.on(name)('lock')
    await untilWaiters(sab, 0, 1)
    await victim.terminate()
    await next
    assert.strictEqual(lock.holder, member.threadId)
    await member.terminate()
    assert.strictEqual(lock.holder, null)
    assert.strictEqual(lock.locked, false)
  })

  test(`${name}: a word that was locked without the package has no known holder`, () => {
    const { lock, word } = setUp()
    Atomics.store(word, 0, name === 'AsyncLock' ? 1 : -1)
    assert.deepStrictEqual([lock.locked, lock.holder], [true, null])
    // A failed attempt makes nobody the holder.
    assert.deepStrictEqual([lock.tryLock(), lock.holder], [null, null])
    Atomics.store(word, 0, 0)
  })

  test(`${name}: the holder is a thread that holds it, at every moment of a storm`, async t => {
    const { sab, lock } = setUp()
    const stop = new Int32Array(new SharedArrayBuffer(4))
    const threads = [0, 1].map(() => startWorker(t, { sab, stop, name }, ({ api, require, data }) => {
      const { sab, stop, name } = data
      const { threadId } = require('worker_threads')
      const lock = new api[name](sab)
      const isHolder = () => lock.holder === threadId
      let wrong = 0
      while (Atomics.load(stop, 0) === 0) wrong += lock.executeLockedSync(isHolder) ? 0 : 1
      return wrong
    }))
    const ids = new Set([null, ...threads.map(({ worker }) => worker.threadId)])
    const seen = new Set()
    await until(() => {
      for (let n = 0; n < 1000; n++) seen.add(lock.holder)
      return seen.size === 3
    }, 'both were seen, and neither')
    for (const id of seen) assert.ok(ids.has(id), String(id))
    Atomics.store(stop, 0, 1)
    for (const thread of threads) assert.strictEqual(await thread.done(), 0)
    assert.strictEqual(lock.holder, null)
  })
}

test('RwLock: readers are no holder, and a writer that becomes a reader is none any more', async t => {
  const { sab } = newLock()
  const lock = new api.RwLock(sab)
  const member = await startMember(t, sab)
  await member.on('RwLock')('lockShared as reader')
  const mine = lock.tryLockShared()
  assert.deepStrictEqual([lock.readers, lock.holder], [2, null])
  mine.unlock()
  await member.do('unlock', 'reader')
  await member.on('RwLock')('lock as writer')
  assert.strictEqual(lock.holder, member.threadId)
  await member.do('downgrade', 'writer', 'reader')
  assert.deepStrictEqual([lock.readers, lock.holder], [1, null])
})

/** Ways to wait at the things, main's promise and a worker's block. */
const WAITS = {
  AsyncLock: ['lockAsync', 'lock'],
  RwLock: ['lockSharedAsync', 'lock'],
  Semaphore: ['acquireAsync', 'hold'],
  Barrier: ['waitAsync', 'wait'],
  Latch: ['waitAsync', 'wait']
}

for (const name of Object.keys(WAITS)) {
  test(`${name}: waiters are the blocked threads and the pending promises of all threads`, async t => {
    const { sab } = newLock()
    const options = name === 'Barrier' ? { parties: 9 } : optionsOf(name)
    const thing = new api[name](sab, options)
    const member = await startMember(t, sab)
    if (name.endsWith('Lock')) thing.tryLock()
    const [awaits, blocks] = WAITS[name]
    assert.strictEqual(thing.waiters, 0)
    const controller = new TinyController({ reason: 'mine' })
    const permits = name === 'Semaphore' ? [1] : []
    const promise = watch(thing[awaits](...permits, { signal: controller.signal }))
    assert.strictEqual(thing.waiters, 1)
    const call = member.on(name, 0, options)
    call(blocks)
    await until(() => thing.waiters === 2)
    assert.strictEqual(new api[name](sab, options).waiters, 2)
    controller.abort()
    assert.strictEqual(thing.waiters, 1)
    await until(() => promise.value === 'mine')
    await member.terminate()
    assert.strictEqual(thing.waiters, 0)
  })
}

test('Condition: waiters', async () => {
  const lock = newLock()
  const condition = new api.Condition(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const waiting = condition.waitAsync(token)
  assert.deepStrictEqual([condition.waiters, lock.waiters, lock.holder], [1, 0, null])
  condition.notify()
  assert.deepStrictEqual([condition.waiters, await waiting, lock.holder], [0, true, MAIN])
  token.unlock()
})

test('they are read-only, not enumerable, of instances only; what is no lock has no holder', async () => {
  for (const name of NAMES) {
    const thing = create(name)
    const expected = name.endsWith('Lock') ? ['holder', 'waiters'] : ['waiters']
    for (const key of ['holder', 'waiters']) {
      assert.strictEqual(key in thing, expected.includes(key), `${name}.${key}`)
      if (!expected.includes(key)) continue
      assert.throws(() => { thing[key] = 1 }, TypeError)
      assert.ok(!Object.keys(thing).includes(key))
      const { get } = Object.getOwnPropertyDescriptor(api[name].prototype, key)
      for (const other of [undefined, {}, api[name].prototype]) assert.throws(() => get.call(other), TypeError)
    }
  }
  assert.ok(await rejection((async () => api.AsyncLock.prototype.holder)()) instanceof TypeError)
})
