'use strict'
// nodes: >=16 (older ones lack what the engines need)

// The common part of process locks, over an engine that does as it is told.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../harness')
const { FakeEngine, never, withResolvers } = require('../fixtures/fake-engine')
const { processLocks } = require('../../processes')

const turn = () => new Promise(resolve => setImmediate(resolve))
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)
const { cable } = FakeEngine
// Signals of Node before 16.14 have no reasons.
const HAS_REASONS = 'reason' in AbortSignal.prototype
const no = async () => false
const fails = async () => { throw cable }
const fail = () => { throw new Error('on purpose') }

/** A test of a new engine and its locks. */
function testLocks (what, body) {
  test(what, async t => {
    const engine = new FakeEngine()
    await body(engine, processLocks(engine), t)
    await turn()
  })
}

/**
 * How a lock is lost: by an act of its callback, or by the answer to a question, `held` between two callbacks or
 * `release` at the end. `cause` is that of the error.
 */
const losses = {
  'its callback never ends': { callback: engine => engine.lose(never()) },
  'its callback ends': { callback: engine => engine.lose(1) },
  'its callback ends because of that': {
    callback: (engine, { signal }) => Promise.all([
      new Promise(resolve => signal.addEventListener('abort', resolve)), turn().then(() => engine.lose())
    ])
  },
  'its callback fails later, of which nobody hears': { callback: engine => engine.lose(turn().then(fails)) },
  'between two callbacks, the engine says no': { held: no, cause: undefined },
  'between two callbacks, the question fails': { held: fails },
  'at the end, the engine says no': { release: no, cause: undefined },
  'at the end, the question fails': { release: fails },
  'at the end, the question is never answered': { release: engine => turn().then(() => engine.lose(never())) }
}

for (const [how, { callback = () => 1, held, release, ...row }] of Object.entries(losses)) {
  test(`ERR_LOCK_LOST: ${how}`, async () => {
    const engine = new FakeEngine()
    const locks = processLocks(engine, release && { batch: 1 })
    engine.answers = { held: held ? [held] : [], release: release ? [release] : [] }
    let lock
    const begin = given => {
      lock = given
      return callback(engine, lock)
    }
    const lost = [locks.request('a', begin)]
    // Which is known once the engine has answered.
    if (held) lost.push(locks.request('a', () => code(lost[0])))
    const next = locks.request('a', ({ token, ownerDied }) => [token, ownerDied])
    await Promise.all(lost.map(async promise => {
      const error = await promise.catch(each => each)
      assert.deepStrictEqual([error.code, error.name, lock.signal.aborted], ['ERR_LOCK_LOST', 'LockLostError', true])
      const cause = 'cause' in row ? row.cause : cable
      if (HAS_REASONS || cause !== cable) assert.strictEqual(error.cause, cause)
      if (HAS_REASONS) assert.strictEqual(lock.signal.reason, error)
      assert.strictEqual(lock.isLost, true)
    }))
    // One that is noticed before the end is that of a dead owner, should the engine still have it.
    assert.deepStrictEqual([await next, engine.released], [[2, !release], [!release, false]])
  })
}

testLocks('while the lock is given back, nothing asks any more whether it is held', async (engine, locks) => {
  const [held, release] = [withResolvers(), withResolvers()]
  engine.answers = { held: [() => held.promise, no], release: [() => release.promise] }
  const results = [1, 2].map(number => locks.request('a', () => number))
  while (engine.released.length === 0) await turn()
  held.resolve(true)
  assert.strictEqual(await results[0], 1)
  await turn()
  release.resolve(true)
  assert.strictEqual(await results[1], 2)
})

testLocks('a callback may await the request before it, in the same batch', async (engine, locks) => {
  const first = locks.request('a', () => 1)
  assert.strictEqual(await locks.request('a', () => first), 1)
  assert.strictEqual(engine.acquired, 1)
})

testLocks('a lock that is lost before anything runs is given back, and another one asked for', async engine => {
  for (const mode of engine.modes) {
    engine.losing = 1
    assert.strictEqual(await processLocks(engine).request('a', { mode }, ({ token }) => token), engine.token)
  }
  assert.deepStrictEqual([engine.token, engine.released.length], [4, 4])
})

testLocks('ownerDied lasts until a callback with an exclusive lock that was told ends well', async (engine, locks) => {
  engine.ownerDied = true
  const told = []
  const request = (isBad, mode) => locks.request('a', { mode }, ({ ownerDied }) => {
    told.push(ownerDied)
    if (isBad) fail()
  })
  await request(false, 'shared')
  assert.deepStrictEqual(engine.released, [true])
  await Promise.allSettled([request(true), request(true)])
  // A failure counts at once, before the lock is given back.
  await turn()
  assert.deepStrictEqual(engine.released, [true, true])
  await Promise.allSettled([request(true), request(false), request(true)])
  await turn()
  assert.deepStrictEqual(engine.released, [true, true, false])
  assert.deepStrictEqual(told, [true, true, true, true, true, false])
})

testLocks('abandon(): the next one sees it, in a batch, too; after its callback it is false', async (engine, locks) => {
  let late
  const results = await Promise.all([
    locks.request('a', lock => {
      late = lock
      return [lock.abandon(), lock.ownerDied]
    }),
    locks.request('a', lock => [lock.ownerDied, lock.abandon()])
  ])
  await turn()
  assert.deepStrictEqual(results, [[true, false], [true, true]])
  assert.deepStrictEqual([late.abandon(), engine.released], [false, [true]])
  assert.strictEqual(await locks.request('a', { mode: 'shared' }, lock => lock.abandon()), false)
})

testLocks('a repair runs first if the owner died; then nobody hears of it', async (engine, locks) => {
  engine.ownerDied = true
  const repaired = []
  const repair = async ({ ownerDied, token }) => { await repaired.push([ownerDied, token]) }
  const request = callback => locks.request('a', { repair }, callback)
  assert.strictEqual(await request(({ ownerDied }) => ownerDied), false)
  assert.strictEqual(await request(({ ownerDied }) => ownerDied), false)
  assert.deepStrictEqual([repaired, engine.released], [[[true, 1]], [false, false]])
})

testLocks('a repair that fails leaves the mark, and so does an error of a callback with one', async (engine, locks) => {
  const toldOf = () => locks.request('a', ({ ownerDied }) => ownerDied)
  let calls = 0
  await assert.rejects(locks.request('a', { repair () {} }, fail), /on purpose/)
  await assert.rejects(locks.request('a', { repair: fail }, () => calls++), /on purpose/)
  await assert.rejects(locks.request('a', { repair: lock => { lock.abandon() } }, () => calls++), /abandoned/)
  assert.deepStrictEqual([await toldOf(), await toldOf(), calls], [true, false, 0])
  await assert.rejects(locks.request('a', fail), /on purpose/)
  assert.strictEqual(await toldOf(), false)
})

testLocks('a repair whose lock is lost meanwhile: no callback', async (engine, locks) => {
  engine.ownerDied = true
  let calls = 0
  const repair = async () => {
    engine.lose()
    await turn()
  }
  assert.strictEqual(await code(locks.request('a', { repair }, () => calls++)), 'ERR_LOCK_LOST')
  await turn()
  await turn()
  assert.deepStrictEqual([calls, engine.released], [0, [true]])
})

testLocks('ifAvailable and timeout 0 make one attempt; this process counts as any other', async (engine, locks) => {
  const request = (options, callback = lock => lock && lock.token) => locks.request('a', options, callback)
  for (const mode of engine.modes) {
    engine.isFree = true
    assert.strictEqual(await request({ mode, ifAvailable: true }), engine.token)
    assert.strictEqual(await request({ mode, timeout: 0 }), engine.token)
    engine.isFree = false
    engine.holders = [{ name: 'a', mode, pid: 12, host: 'abc', threadId: 3, label: 'report' }]
    assert.strictEqual(await request({ mode, ifAvailable: true }), null)
    const error = await request({ mode, timeout: 0 }).catch(each => each)
    assert.deepStrictEqual([error.code, error.name], ['ERR_TIMEOUT', 'TimeoutError'])
    assert.ok(/"a", held by process 12 on abc, thread 3, "report"/.test(error.message), error.message)
    assert.deepStrictEqual([error.holder.pid, error.holder.isOurs], [12, false])
    assert.deepStrictEqual(error.owner, { pid: 12, threadId: 3 })
  }
  engine.isFree = true
  const gate = withResolvers()
  const held = request({}, () => gate.promise)
  assert.strictEqual(await request({ ifAvailable: true }), null)
  gate.resolve()
  await held
  assert.strictEqual(engine.acquired, 1)
})

testLocks('an attempt that is slow is not late; it can be aborted, and what comes then is given back', async engine => {
  const locks = processLocks(engine)
  for (const options of [{ ifAvailable: true }, { timeout: 0 }]) {
    const gate = engine.pause()
    const slow = locks.request('a', options, () => 'done')
    await turn()
    gate.resolve()
    assert.strictEqual(await slow, 'done')
    const again = engine.pause()
    const controller = new AbortController()
    const { length } = engine.released
    const aborted = locks.request('a', { ...options, signal: controller.signal }, () => 'done')
    await turn()
    controller.abort()
    assert.strictEqual((await aborted.catch(error => error)).name, 'AbortError')
    again.resolve()
    while (engine.released.length === length) await turn()
    assert.strictEqual(await locks.request('a', () => 1), 1)
  }
})

testLocks('a wait whose time is over names the holder; an engine that does not say is not waited for', async engine => {
  const locks = processLocks(engine)
  const gate = engine.pause()
  engine.holders = [{ name: 'a', mode: 'exclusive', pid: process.pid, threadId: 0 }]
  const error = await locks.request('a', { timeout: 5 }, () => {}).catch(each => each)
  assert.ok(/Timed out after 5 ms waiting for "a", held by this process$/.test(error.message), error.message)
  engine.query = fails
  const other = await locks.request('a', { timeout: 5 }, () => {}).catch(each => each)
  assert.deepStrictEqual([other.code, other.holder, other.owner], ['ERR_TIMEOUT', null, null])
  gate.resolve()
})

testLocks('an engine whose holders or errors are anything: a request rejects, and nothing else does', async engine => {
  const locks = processLocks(engine)
  const outside = []
  const hear = error => outside.push(error)
  process.on('unhandledRejection', hear)
  const odd = { toString: 1 }
  const gate = engine.pause()
  for (const holders of [
    [{ name: odd, mode: odd, pid: odd, host: odd, threadId: odd, label: odd, since: odd }], [null], [undefined], [1],
    {}, null
  ]) {
    engine.holders = holders
    assert.strictEqual(await code(locks.request('a', { timeout: 5 }, () => {})), 'ERR_TIMEOUT')
  }
  engine.query = async () => undefined
  assert.strictEqual(await code(locks.request('a', { timeout: 5 }, () => {})), 'ERR_TIMEOUT')
  gate.resolve()
  const bare = Object.create(null)
  for (const error of [bare, undefined, null, Symbol('odd'), { message: odd }]) {
    engine.acquire = engine.attempt = async () => { throw error }
    for (const options of [{}, { ifAvailable: true }]) {
      const { code, cause } = await locks.request('a', options, () => {}).catch(each => each)
      assert.deepStrictEqual([code, cause], ['ERR_LOCK_UNAVAILABLE', error])
    }
  }
  await turn()
  process.removeListener('unhandledRejection', hear)
  assert.deepStrictEqual(outside, [])
})

testLocks('a lock that nobody holds: a timeout names the first in line, unless that is this process', async engine => {
  const locks = processLocks(engine)
  const gate = engine.pause()
  const waits = { name: 'a', mode: 'exclusive', pid: 12, host: 'abc' }
  engine.query = async () => ({ held: [], pending: [waits, { ...waits, pid: 13 }] })
  const error = await locks.request('a', { timeout: 5 }, () => {}).catch(each => each)
  assert.ok(/waiting for "a", behind process 12 on abc$/.test(error.message), error.message)
  assert.deepStrictEqual([error.holder.pid, error.holder.isWaiting, error.owner], [12, true, null])
  engine.query = async () => ({ held: [], pending: [{ name: 'a', mode: 'exclusive', pid: process.pid }, waits] })
  const other = await locks.request('a', { timeout: 5 }, () => {}).catch(each => each)
  assert.deepStrictEqual([other.message, other.holder], ['Timed out after 5 ms waiting for "a"', null])
  gate.resolve()
})

testLocks('an engine is told of label and thread, of the locks or of the request', async engine => {
  const locks = processLocks(engine, { label: 'all' })
  await locks.request('a', () => {})
  await locks.request('b', { label: 'one' }, () => {})
  await locks.request('c', { label: 'now', ifAvailable: true }, () => {})
  assert.deepStrictEqual(engine.asked, ['all', 'one', 'now'].map(label => ({ label, threadId: 0 })))
})

testLocks('hold(): until unlock(), which may come twice', async (engine, locks) => {
  const lock = await locks.hold('a')
  assert.deepStrictEqual(
    [lock.name, lock.mode, lock.token, lock.ownerDied, lock.isLost, lock.signal.aborted],
    ['a', 'exclusive', 1, false, false, false]
  )
  const next = locks.hold('a')
  await turn()
  assert.strictEqual(await locks.hold('a', { ifAvailable: true }), null)
  assert.deepStrictEqual(await Promise.all([lock.unlock(), lock.unlock()]), [undefined, undefined])
  const other = await next
  assert.strictEqual(other.abandon(), true)
  await other.unlock()
  await turn()
  assert.deepStrictEqual(engine.released, [true])
  const { asyncDispose } = Symbol
  if (asyncDispose !== undefined) await (await locks.hold('b'))[asyncDispose]()
})

testLocks('hold(): unlock() rejects if the lock was lost, and nothing else does', async (engine, locks) => {
  const lock = await locks.hold('a')
  engine.lose()
  await turn()
  assert.strictEqual(lock.isLost, true)
  assert.strictEqual(await code(lock.unlock()), 'ERR_LOCK_LOST')
  const gate = engine.pause()
  assert.strictEqual(await code(locks.hold('b', { timeout: 1 })), 'ERR_TIMEOUT')
  gate.resolve()
})

testLocks('isLost looks at the clock: a lease may be over before any timer has run', async (engine, locks) => {
  const promise = locks.request('a', lock => {
    assert.strictEqual(lock.isLost, false)
    engine.remaining = -1
    assert.deepStrictEqual([lock.isLost, lock.signal.aborted], [true, true])
  })
  assert.strictEqual(await code(promise), 'ERR_LOCK_LOST')
})

testLocks('an engine that fails rejects all that wait, and may be asked again', async (engine, locks) => {
  engine.isOpen = fails()
  const codes = await Promise.all([1, 2, 3].map(() => code(locks.request('a', () => {}))))
  assert.deepStrictEqual([new Set(codes), engine.acquired], [new Set(['ERR_LOCK_UNAVAILABLE']), 1])
  const error = await locks.request('a', { ifAvailable: true }, () => {}).catch(each => each)
  assert.deepStrictEqual([error.code, error.cause], ['ERR_LOCK_UNAVAILABLE', cable])
  engine.isOpen = Promise.resolve()
  assert.strictEqual(await locks.request('a', () => 1), 1)
})

testLocks('wrong arguments are rejections, wrong options of processLocks errors', async (engine, locks) => {
  for (const args of [
    [1, {}, () => {}], [Symbol('a'), {}, () => {}], ['a', { mode: 'both' }, () => {}],
    ['a', { mode: Symbol('a') }, () => {}], ['a', { mode: Object.create(null) }, () => {}],
    ['a', { timeout: NaN }, () => {}], ['a', { timeout: '1' }, () => {}], ['a', { timeout: BigInt(1) }, () => {}],
    ['a', { signal: {} }, () => {}], ['a', { signal: 1 }, () => {}], ['a', {}, 1], ['a', null, () => {}],
    ['a', { ifavailable: true }, () => {}], ['a', { ifAvailable: 1 }, () => {}], ['a', { label: 1 }, () => {}],
    ['a', { repair: 1 }, () => {}], ['a', { repair () {}, mode: 'shared' }, () => {}], ['a'], []
  ]) {
    assert.strictEqual(await code(locks.request(...args)), 'TypeError')
  }
  assert.strictEqual(await code(locks.hold('a', { repair () {} })), 'TypeError')
  assert.strictEqual(await code(locks.query(1)), 'TypeError')
  assert.throws(() => locks.requestSync('a', () => {}), { name: 'NotSupportedError' })
  const controller = new AbortController()
  controller.abort()
  const aborted = locks.request('a', { signal: controller.signal }, () => {})
  assert.strictEqual((await aborted.catch(error => error)).name, 'AbortError')
  for (const batch of [0, -1, NaN]) assert.throws(() => processLocks(engine, { batch }), RangeError)
  for (const other of [undefined, null, 1, {}]) assert.throws(() => processLocks(other), TypeError)
  engine.modes = ['exclusive']
  assert.strictEqual((await locks.request('a', { mode: 'shared' }, () => {}).catch(e => e)).name, 'NotSupportedError')
})

testLocks('what a callback throws or gives, however odd, settles its promise', async (engine, locks) => {
  const outcome = callback => locks.request('a', callback).then(value => ({ value }), reason => ({ reason }))
  const odd = { get then () { throw odd } }
  const failOddly = () => { throw undefined } // eslint-disable-line no-throw-literal
  assert.deepStrictEqual(await outcome(failOddly), { reason: undefined })
  assert.strictEqual((await outcome(() => odd)).reason, odd)
  assert.deepStrictEqual(await outcome(() => ({ then: resolve => resolve(1) })), { value: 1 })
  assert.deepStrictEqual(await outcome(() => {}), { value: undefined })
})

testLocks('an abort in whose listener the lock is requested, and one after the callback has begun', async engine => {
  const locks = processLocks(engine)
  const gate = engine.pause()
  const controller = new AbortController()
  const { signal } = controller
  let inner
  signal.addEventListener('abort', () => { inner = locks.request('a', () => 'inner') })
  const outer = code(locks.request('a', { signal }, () => {}))
  while (engine.acquired === 0) await turn()
  controller.abort()
  assert.ok(['AbortError', 'ABORT_ERR', 20].includes(await outer))
  gate.resolve()
  assert.strictEqual(await inner, 'inner')
  const late = new AbortController()
  assert.strictEqual(await locks.request('a', { signal: late.signal }, async () => {
    late.abort()
    await turn()
    return 'done'
  }), 'done')
})

testLocks('a callback runs after its request has returned, in its asynchronous context', async (engine, locks) => {
  const store = new AsyncLocalStorage()
  const repair = () => { assert.strictEqual(store.getStore(), 9) }
  for (const mode of ['exclusive', 'shared']) {
    let hasReturned = false
    const results = [1, 2, 3].map(n =>
      store.run(n, () => locks.request('a', { mode }, () => hasReturned && store.getStore()))
    )
    hasReturned = true
    assert.deepStrictEqual(await Promise.all(results), [1, 2, 3])
  }
  engine.ownerDied = true
  await store.run(9, () => locks.request('a', { repair }, () => {}))
  engine.isFree = false
  assert.strictEqual(await store.run(8, () => locks.request('a', { ifAvailable: true }, () => store.getStore())), 8)
})

testLocks('the engine works in the context in which the locks were made, not in that of a request', async engine => {
  const store = new AsyncLocalStorage()
  const seen = []
  const { acquire } = engine
  engine.acquire = (...args) => {
    seen.push(store.getStore())
    return acquire.apply(engine, args)
  }
  const locks = store.run('maker', () => processLocks(engine))
  await store.run('asker', () => locks.request('a', () => {}))
  assert.deepStrictEqual(seen, ['maker'])
})

testLocks('close() rejects what waits, lets what runs end, and then closes the engine', async (engine, locks) => {
  const held = await locks.hold('a')
  const waiting = [locks.request('a', () => {}), locks.hold('a')]
  const closed = locks.close()
  const refused = [...waiting, locks.request('b', () => {}), locks.query()]
  const outcomes = await Promise.all(refused.map(promise => promise.catch(({ name }) => name)))
  assert.deepStrictEqual(outcomes, new Array(4).fill('AbortError'))
  await turn()
  assert.strictEqual(engine.isClosed, false)
  await held.unlock()
  await closed
  assert.strictEqual(engine.isClosed, true)
})

test('an engine that grants nothing is not asked for ever', async () => {
  for (const nothing of [undefined, null]) {
    const engine = new FakeEngine()
    engine.acquire = async () => nothing
    const locks = processLocks(engine)
    assert.strictEqual(await code(locks.request('a', () => 1)), 'ERR_LOCK_UNAVAILABLE')
    await locks.close()
  }
})

test('a grant without a signal of its loss is given back: its request rejects, and others go on', async () => {
  for (const read of [() => undefined, fail]) {
    const engine = new FakeEngine()
    const acquire = engine.acquire.bind(engine)
    engine.acquire = async (...args) => Object.defineProperty(await acquire(...args), 'lost', { get: read })
    const locks = processLocks(engine)
    assert.strictEqual(await code(locks.request('a', () => 1)), 'ERR_LOCK_UNAVAILABLE')
    delete engine.acquire
    assert.deepStrictEqual([await locks.request('a', () => 1), engine.released.length], [1, 2])
    await locks.close()
  }
})

test('many requests, and as many that give up, take a time that grows no faster than they do', async () => {
  const times = []
  for (const requests of [1000, 30_000]) {
    const engine = new FakeEngine()
    const locks = processLocks(engine, { batch: 1000, batchTime: 1000 })
    const began = process.hrtime()
    let count = 0
    // One each: Node looks through all listeners of a signal to add another.
    const controllers = Array.from({ length: requests }, () => new AbortController())
    const gate = engine.pause()
    const rest = controllers.map(({ signal }) => code(locks.request('b', { signal }, () => {})))
    const done = Array.from({ length: requests }, () => locks.request('a', { timeout: 1e6 }, () => { count++ }))
    for (const controller of controllers) controller.abort()
    gate.resolve()
    await Promise.all([...rest, ...done])
    assert.strictEqual(count, requests)
    const [seconds, nanoseconds] = process.hrtime(began)
    times.push((seconds * 1e3 + nanoseconds / 1e6) / requests)
  }
  assert.ok(times[1] < 10 * times[0] + 0.05, `${times} ms each`)
})
