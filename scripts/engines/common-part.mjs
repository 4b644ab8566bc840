// Checks of process-locks.mts, over an obedient engine, and of lease.mts. argv[2]: the folder of the example.

import assert from 'node:assert'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const load = name => import(pathToFileURL(path.join(process.argv[2], name)))
const { processLocks } = await load('process-locks.mts')
const { Lease } = await load('lease.mts')
let outside
process.on('unhandledRejection', error => { outside = error })
process.on('uncaughtException', error => { outside = error })

const turn = () => new Promise(setImmediate)
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)
const cable = new Error('the cable')
const never = () => new Promise(() => {})
const yes = async () => true
const no = async () => false
const fails = async () => { throw cable }

/** Grants one lock after the other. */
class FakeEngine {
  id = 'fake'
  modes = ['exclusive', 'shared']
  token = 0
  ownerDied = false
  released = [] // the `died` of each release
  acquired = 0
  isOpen = Promise.resolve()
  answers = { held: [], release: [] } // those to come; then `yes`
  losing = 0 // so many of the next locks are lost before they are given
  losers = []

  async acquire (name, mode, signal) {
    this.acquired++
    await Promise.race([this.isOpen, once(signal, 'abort').then(() => { throw signal.reason })])
    this.losers.push(new AbortController())
    const answer = question => (this.answers[question].shift() ?? yes)(this)
    const grant = {
      token: ++this.token,
      ownerDied: this.ownerDied,
      lost: this.losers.at(-1).signal,
      held: () => answer('held'),
      release: died => {
        this.released.push(died)
        this.ownerDied = died
        return answer('release')
      }
    }
    if (this.losing-- > 0) this.lose()
    return grant
  }

  /** Loses the last lock. Gives `result`. */
  lose (result) {
    this.losers.at(-1).abort(cable)
    return result
  }

  /** Grants nothing until the result is resolved. */
  pause () {
    const gate = Promise.withResolvers()
    this.isOpen = gate.promise
    return gate
  }

  async close () {}
}

/**
 * How a lock is lost: by an act of its callback, or by the answer to a question, `held` between two callbacks or
 * `release` at the end. `cause` is that of the error.
 */
const losses = {
  'its callback never ends': { callback: engine => engine.lose(never()) },
  'its callback ends': { callback: engine => engine.lose(1) },
  'its callback ends because of that': {
    callback: (engine, { signal }) => Promise.all([once(signal, 'abort'), turn().then(() => engine.lose())])
  },
  'its callback fails later, of which nobody hears': { callback: engine => engine.lose(turn().then(fails)) },
  'between two callbacks, the engine says no': { held: no, cause: undefined },
  'between two callbacks, the question fails': { held: fails },
  'at the end, the engine says no': { release: no, cause: undefined },
  'at the end, the question fails': { release: fails },
  'at the end, the question is never answered': { release: engine => turn().then(() => engine.lose(never())) }
}

/** Checks that the error has its cause, and is the signal's reason. Callbacks that have not begun get another lock. */
async function checkLoss (engine, { callback = () => 1, held, release, ...row }) {
  const locks = processLocks(engine, release && { batch: 1 })
  engine.answers = { held: [held], release: [release] }
  let signal
  const begin = lock => {
    signal = lock.signal
    return callback(engine, lock)
  }
  const lost = [locks.request('a', {}, begin)]
  if (held) lost.push(locks.request('a', {}, () => code(lost[0]))) // which is known once the engine has answered
  const next = locks.request('a', {}, ({ token, ownerDied }) => [token, ownerDied])
  await Promise.all(lost.map(async promise => {
    const error = await promise.catch(error => error)
    assert.deepStrictEqual([error.code, signal.aborted], ['ERR_LOCK_LOST', true])
    assert.deepStrictEqual([error.cause, signal.reason], ['cause' in row ? row.cause : cable, error])
  }))
  // One that is noticed before the end is that of a dead owner, should the engine still have it.
  assert.deepStrictEqual([await next, engine.released], [[2, !release], [!release, false]])
}

const checks = {
  async 'a callback may await the request before it, in the same batch' (engine, locks) {
    const first = locks.request('a', {}, () => 1)
    assert.strictEqual(await locks.request('a', {}, () => first), 1)
    assert.strictEqual(engine.acquired, 1)
  },
  async 'a lock that is lost before anything runs is given back, and another one asked for' (engine, locks) {
    for (const mode of engine.modes) {
      engine.losing = 1
      assert.strictEqual(await locks.request('a', { mode }, ({ token }) => token), engine.token)
    }
    assert.deepStrictEqual([engine.token, engine.released.length], [4, 4])
  },
  async 'ownerDied lasts until a callback with an exclusive lock that was told of it ends well' (engine, locks) {
    engine.ownerDied = true
    const told = []
    const request = (fails, mode) => locks.request('a', { mode }, ({ ownerDied }) => {
      told.push(ownerDied)
      if (fails) throw new Error('fails')
    })
    await request(false, 'shared')
    assert.deepStrictEqual(engine.released, [true])
    await Promise.allSettled([request(true), request(true)])
    await turn() // a failure counts at once, before the lock is given back
    assert.deepStrictEqual(engine.released, [true, true])
    await Promise.allSettled([request(true), request(false), request(true)])
    await turn()
    assert.deepStrictEqual(engine.released, [true, true, false])
    assert.deepStrictEqual(told, [true, true, true, true, true, false])
  },
  async 'an engine that fails rejects all that wait, and may be asked again' (engine, locks) {
    engine.isOpen = fails()
    const codes = await Promise.all([1, 2, 3].map(() => code(locks.request('a', {}, () => {}))))
    assert.deepStrictEqual([new Set(codes), engine.acquired], [new Set(['ERR_LOCK_UNAVAILABLE']), 1])
    engine.isOpen = Promise.resolve()
    assert.strictEqual(await locks.request('a', {}, () => 1), 1)
  },
  async 'wrong arguments are rejections, a batch of no requests an error' (engine, locks) {
    for (const args of [
      [1, {}, () => {}], [Symbol('a'), {}, () => {}], ['a', { mode: 'both' }, () => {}],
      ['a', { mode: Symbol('a') }, () => {}], ['a', { mode: Object.create(null) }, () => {}],
      ['a', { timeout: NaN }, () => {}], ['a', { timeout: '1' }, () => {}], ['a', { timeout: 1n }, () => {}],
      ['a', { signal: {} }, () => {}], ['a', { signal: 1 }, () => {}], ['a', {}, 1], ['a', null, () => {}],
      ['a', undefined, () => {}], []
    ]) {
      assert.strictEqual(await code(locks.request(...args)), 'TypeError')
    }
    const signal = AbortSignal.abort(new RangeError())
    assert.strictEqual(await code(locks.request('a', { signal }, () => {})), 'RangeError')
    for (const batch of [0, -1, NaN]) assert.throws(() => processLocks(engine, { batch }), RangeError)
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
  async 'an abort in whose listener the lock is requested, and one after the callback has begun' (engine, locks) {
    const gate = engine.pause()
    const controller = new AbortController()
    const { signal } = controller
    let inner
    signal.addEventListener('abort', () => { inner = locks.request('a', {}, () => 'inner') })
    const outer = code(locks.request('a', { signal }, () => {}))
    while (engine.acquired === 0) await turn()
    controller.abort(new RangeError())
    assert.strictEqual(await outer, 'RangeError')
    gate.resolve()
    assert.strictEqual(await inner, 'inner')
    const late = new AbortController()
    const result = locks.request('a', { signal: late.signal, timeout: 50 }, () => late.abort() ?? sleep(60, 'done'))
    assert.strictEqual(await result, 'done')
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
    await sleep(60)
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

for (const [what, row] of Object.entries(losses))
  checks[`ERR_LOCK_LOST: ${what}`] = engine => checkLoss(engine, row)

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
