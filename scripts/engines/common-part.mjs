// Checks of process-locks.mts alone, over an engine that does what it is told, and of lease.mts. argv[2]: the folder of
// the example.

import assert from 'node:assert'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const load = name => import(pathToFileURL(path.join(process.argv[2], name)))
const { processLocks } = await load('process-locks.mts')
const { Lease } = await load('lease.mts')
let outside
process.on('unhandledRejection', error => { outside = error })
process.on('uncaughtException', error => { outside = error })

/** Grants one lock after the other. What `held` and `release` answer, and when, can be changed. */
class FakeEngine {
  id = 'fake'
  modes = ['exclusive', 'shared']
  token = 0
  ownerDied = false
  released = [] // the `died` of each release
  acquired = 0
  isOpen = Promise.resolve()
  held = async () => true
  release = async () => true
  losers = []

  async acquire (name, mode, signal) {
    this.acquired++
    await Promise.race([
      this.isOpen,
      new Promise((resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    ])
    const loser = new AbortController()
    this.losers.push(loser)
    return {
      token: ++this.token,
      ownerDied: this.ownerDied,
      lost: loser.signal,
      held: () => this.held(),
      release: died => {
        this.released.push(died)
        this.ownerDied = died
        return this.release()
      }
    }
  }

  /** Grants nothing until the result is resolved. */
  pause () {
    const gate = Promise.withResolvers()
    this.isOpen = gate.promise
    return gate
  }

  async close () {}
}

const turn = () => new Promise(setImmediate)
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)

const checks = {
  async 'a result counts once the engine has confirmed the lock' (engine, locks) {
    engine.release = async () => false
    assert.strictEqual(await code(locks.request('a', {}, () => 1)), 'ERR_LOCK_LOST')
    engine.release = async () => { throw new Error('gone') }
    assert.strictEqual(await code(locks.request('a', {}, () => 1)), 'ERR_LOCK_LOST')
    engine.release = async () => true
    assert.strictEqual(await locks.request('a', {}, () => 1), 1)
  },
  async 'within a batch too, and a callback may await the request before it' (engine, locks) {
    const first = locks.request('a', {}, () => 1)
    const second = locks.request('a', {}, () => first)
    assert.strictEqual(await second, 1)
    assert.strictEqual(engine.acquired, 1)
  },
  async 'a lock that is found to be lost between two callbacks: no other one begins under it' () {
    for (const held of [async () => false, async () => { throw new Error('gone') }]) {
      const engine = new FakeEngine()
      const locks = processLocks(engine)
      engine.held = held
      let signal
      const first = locks.request('a', {}, () => 1)
      const second = locks.request('a', {}, lock => {
        signal = lock.signal
        return code(first) // which is known once the engine has answered
      })
      const third = locks.request('a', {}, ({ token }) => token)
      assert.deepStrictEqual(
        [await code(first), await code(second), await third],
        ['ERR_LOCK_LOST', 'ERR_LOCK_LOST', 2]
      )
      assert.strictEqual(signal.aborted, true)
    }
  },
  async 'after a loss the lock is given back as that of a dead owner, should the engine still have it' (engine, locks) {
    const first = locks.request('a', {}, () => {
      engine.losers[0].abort()
      return new Promise(() => {})
    })
    assert.strictEqual(await code(first), 'ERR_LOCK_LOST')
    assert.strictEqual(await locks.request('a', {}, ({ ownerDied }) => ownerDied), true)
    assert.deepStrictEqual(engine.released, [true, false])
  },
  async 'the error of a loss has its cause, and is the reason of the signal' (engine, locks) {
    const cause = new Error('the cable')
    let signal
    const lose = lock => {
      signal = lock.signal
      engine.losers[0].abort(cause)
    }
    const error = await locks.request('a', {}, lose).catch(error => error)
    assert.deepStrictEqual([error.code, error.cause, signal.reason], ['ERR_LOCK_LOST', cause, error])
    engine.release = async () => { throw cause }
    assert.strictEqual((await locks.request('a', {}, () => {}).catch(error => error)).cause, cause)
  },
  async 'a lock that is lost before anything runs is given back, and another one asked for' (engine, locks) {
    const { acquire } = engine
    engine.acquire = async (...args) => {
      const grant = await acquire.apply(engine, args)
      if (grant.token === 1) engine.losers[0].abort()
      return grant
    }
    for (const mode of engine.modes)
      assert.strictEqual(await locks.request('a', { mode }, ({ token }) => token), engine.token)
    assert.strictEqual(engine.token, 3)
  },
  async 'a loss rejects what runs; what has not begun gets another lock' (engine, locks) {
    const first = locks.request(
      'a',
      {},
      (lock) => new Promise((resolve) => lock.signal.addEventListener('abort', () => resolve('late')))
    )
    const second = locks.request('a', {}, ({ token }) => token)
    while (engine.losers.length === 0) await turn()
    await turn()
    engine.losers[0].abort()
    assert.strictEqual(await code(first), 'ERR_LOCK_LOST')
    assert.strictEqual(await second, 2)
  },
  async 'a question that is never answered ends with the loss' (engine, locks) {
    engine.release = () => new Promise(() => {})
    const first = locks.request('a', {}, () => 1)
    while (engine.released.length === 0) await turn()
    engine.losers[0].abort()
    assert.strictEqual(await code(first), 'ERR_LOCK_LOST')
  },
  async 'a callback that fails after its loss is heard of by nobody' (engine, locks) {
    let fail
    const first = locks.request('a', {}, () => new Promise((resolve, reject) => { fail = reject }))
    while (fail === undefined) await turn()
    engine.losers[0].abort()
    assert.strictEqual(await code(first), 'ERR_LOCK_LOST')
    fail(new Error('late'))
    await turn()
  },
  async 'ownerDied lasts until a callback that was told of it ends well, within a batch and beyond' (engine, locks) {
    engine.ownerDied = true
    const told = []
    const request = fails => locks.request('a', {}, ({ ownerDied }) => {
      told.push(ownerDied)
      if (fails) throw new Error('fails')
    })
    await Promise.allSettled([request(true), request(true)])
    await turn() // a failure counts at once, before the lock is given back
    assert.deepStrictEqual(engine.released, [true])
    await Promise.allSettled([request(true), request(false), request(true)])
    await turn()
    assert.deepStrictEqual(engine.released, [true, false])
    assert.deepStrictEqual(told, [true, true, true, true, false])
  },
  async 'a shared holder repairs nothing' (engine, locks) {
    engine.ownerDied = true
    await locks.request('a', { mode: 'shared' }, () => {})
    assert.deepStrictEqual(engine.released, [true])
  },
  async 'the engine is asked no more once nobody waits, and again for the next' (engine, locks) {
    const gate = engine.pause()
    const controller = new AbortController()
    const waits = [
      locks.request('a', { signal: controller.signal }, () => {}),
      locks.request('a', { timeout: 1 }, () => {}),
      locks.request('a', { timeout: -1 }, () => {})
    ]
    const codes = waits.map(code)
    assert.deepStrictEqual(await Promise.all(codes.slice(1)), ['ERR_TIMEOUT', 'ERR_TIMEOUT'])
    controller.abort()
    assert.strictEqual(await codes[0], 20) // of an AbortError
    const next = locks.request('a', {}, () => 'next')
    gate.resolve()
    assert.strictEqual(await next, 'next')
    assert.deepStrictEqual([engine.acquired, engine.token], [2, 1])
  },
  async 'an engine that fails rejects all that wait, and may be asked again' (engine, locks) {
    engine.isOpen = Promise.reject(new Error('down'))
    const codes = await Promise.all([1, 2, 3].map(() => code(locks.request('a', {}, () => {}))))
    assert.deepStrictEqual(codes, ['ERR_LOCK_UNAVAILABLE', 'ERR_LOCK_UNAVAILABLE', 'ERR_LOCK_UNAVAILABLE'])
    engine.isOpen = Promise.resolve()
    assert.strictEqual(await locks.request('a', {}, () => 1), 1)
  },
  async 'wrong arguments are rejections' (engine, locks) {
    for (const args of [
      [1, {}, () => {}], [Symbol('a'), {}, () => {}], ['a', { mode: 'both' }, () => {}],
      ['a', { mode: Symbol('a') }, () => {}], ['a', { mode: Object.create(null) }, () => {}],
      ['a', { timeout: NaN }, () => {}], ['a', { timeout: '1' }, () => {}], ['a', { timeout: 1n }, () => {}],
      ['a', { signal: {} }, () => {}], ['a', { signal: 1 }, () => {}], ['a', {}, 1], ['a', null, () => {}],
      ['a', undefined, () => {}], []
    ]) {
      assert.strictEqual(await code(locks.request(...args)), 'TypeError')
    }
    assert.strictEqual(
      await code(locks.request('a', { signal: AbortSignal.abort(new RangeError()) }, () => {})),
      'RangeError'
    )
  },
  async 'what a callback throws or gives, however odd, settles its promise' (engine, locks) {
    const outcome = callback => locks.request('a', {}, callback).then(value => ({ value }), reason => ({ reason }))
    const odd = { get then () { throw odd } }
    const fail = () => { throw undefined } // eslint-disable-line no-throw-literal
    assert.deepStrictEqual(await outcome(fail), { reason: undefined })
    assert.strictEqual((await outcome(() => odd)).reason, odd)
    assert.deepStrictEqual(await outcome(() => ({ then: resolve => resolve(1) })), { value: 1 })
    assert.deepStrictEqual(await outcome(() => {}), { value: undefined })
  },
  async 'aborts: twice, after the callback has begun, and with a request in their listener' (engine, locks) {
    const gate = engine.pause()
    const controller = new AbortController()
    const { signal } = controller
    let inner
    signal.addEventListener('abort', () => { inner = locks.request('a', {}, () => 'inner') })
    const outer = code(locks.request('a', { signal }, () => {}))
    while (engine.acquired === 0) await turn()
    controller.abort(new RangeError())
    controller.abort(new TypeError())
    assert.strictEqual(await outer, 'RangeError')
    gate.resolve()
    assert.strictEqual(await inner, 'inner')
    const late = new AbortController()
    assert.strictEqual(await locks.request('a', { signal: late.signal, timeout: 50 }, async () => {
      late.abort()
      await new Promise(resolve => setTimeout(resolve, 60))
      return 'done'
    }), 'done')
  },
  async 'a batch of no requests is an error' () {
    for (const batch of [0, -1, NaN]) assert.throws(() => processLocks(new FakeEngine(), { batch }), RangeError)
  },
  async 'a callback runs after its request has returned, in its asynchronous context' (engine, locks) {
    const store = new AsyncLocalStorage()
    for (const mode of ['exclusive', 'shared']) {
      let hasReturned = false
      const results = [1, 2, 3].map((n) =>
        store.run(n, () => locks.request('a', { mode }, () => hasReturned && store.getStore()))
      )
      hasReturned = true
      assert.deepStrictEqual(await Promise.all(results), [1, 2, 3])
    }
  },
  async 'a lease ends if no renewal is answered, also while it is given back' () {
    for (const isGivenBack of [false, true]) {
      const lease = new Lease(30, performance.now(), () => new Promise(() => {}))
      if (isGivenBack) lease.rest()
      await once(lease.lost, 'abort')
    }
  },
  async 'a lease ends at the renewal that is refused, and does not at one that fails' () {
    const answers = [async () => { throw new Error('no network') }, async () => true, async () => false]
    const lease = new Lease(3000, performance.now(), () => answers.shift()())
    await once(lease.lost, 'abort')
    assert.strictEqual(answers.length, 0)
  },
  async 'a lease that was given back does not end any more' () {
    const lease = new Lease(20, performance.now(), async () => true)
    lease.rest()
    lease.stop()
    await new Promise(resolve => setTimeout(resolve, 60))
    assert.strictEqual(lease.lost.aborted, false)
  },
  async 'a hundred thousand requests, and as many that give up' () {
    const engine = new FakeEngine()
    const locks = processLocks(engine, { batch: 1000, batchTime: 1000 })
    const times = []
    for (const requests of [1000, 100_000]) {
      const began = performance.now()
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
      times.push((performance.now() - began) / requests)
    }
    assert.ok(times[1] < 10 * times[0] + 0.05, `${times} ms each`)
  }
}

for (const [what, check] of Object.entries(checks)) {
  try {
    const engine = new FakeEngine()
    await check(engine, processLocks(engine))
    await turn()
    assert.strictEqual(outside, undefined)
  } catch (error) {
    console.error(what, error)
    process.exit(1)
  }
}
console.log(Object.keys(checks).length, 'checks')
