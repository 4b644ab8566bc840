'use strict'
// oldest: force (there DOMException and AbortController are missing)

// locks.hold, holdAsync and tryHold: names that are held by a token. lock-manager.test.js and threads.test.js have the
// line, which all requests share.

const assert = require('assert')
const util = require('util')
const { load } = require('../../lib/agent/load-binding')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { hold: request, testLocks } = require('../fixtures/named-locks')
const { converted } = require('../fixtures/odd-calls')
const { now, onAQuietMachine, startWorker, until, words } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { LockManager, UnlockToken, locks } = api
const HAS_SIGNALS = typeof AbortController === 'function'
const { nameCount } = load()

/** The forms that may be called on main; each gives a token or a promise of one. */
const FORMS = {
  tryHold: (name, options) => locks.tryHold(name, options),
  holdAsync: (name, options) => locks.holdAsync(name, options)
}
const turn = () => new Promise(resolve => setImmediate(resolve))
const pending = async () => (await locks.query()).pending.length
const untilPending = async (count) => { while (await pending() !== count) await turn() }
const toldOf = (name) => locks.request(name, ({ ownerDied }) => ownerDied)
const errorOf = (call) => {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('it did not throw')
}

// ——— what they give ———

for (const form of Object.keys(FORMS)) {
  testLocks(`${form}: a token with the name, its mode, and nothing that can be changed`, async () => {
    for (const [options, mode] of [[undefined, 'exclusive'], [null, 'exclusive'], [{ mode: 'shared' }, 'shared']]) {
      const token = await FORMS[form]('x', options)
      assert.ok(token instanceof UnlockToken)
      assert.deepStrictEqual([token.name, token.mode, token.locked, token.ownerDied], ['x', mode, true, false])
      assert.deepStrictEqual([token.tookOver, token.stolen], [false, false])
      assert.strictEqual(util.inspect(token),
        `NamedToken { name: 'x', mode: '${mode}', locked: true, ownerDied: false }`)
      for (const key of ['name', 'mode', 'locked', 'tookOver', 'stolen', 'signal']) {
        assert.throws(() => { token[key] = 1 }, TypeError, key)
      }
      assert.deepStrictEqual(await locks.query(), {
        held: [{ clientId: `${process.pid}-0`, mode, name: 'x' }], pending: []
      })
      const { held } = api.snapshot()
      assert.deepStrictEqual(held.map(({ kind, mode, name }) => [kind, mode, name]), [['named', mode, 'x']])
      assert.deepStrictEqual([token.unlock(), token.unlock(), token.locked], [true, false, false])
      assert.deepStrictEqual([token.name, token.mode, token.stolen], ['x', mode, false])
      assert.strictEqual(nameCount(), 0)
    }
  })
}

testLocks('tryHold: null, and no trace, where the name is held or requested in another mode', async () => {
  const token = locks.tryHold('x', { mode: 'shared' })
  assert.strictEqual(locks.tryHold('x'), null)
  const other = locks.tryHold('x', { mode: 'shared' })
  const waiting = locks.holdAsync('x')
  // It would overtake the one that waits.
  assert.strictEqual(locks.tryHold('x', { mode: 'shared' }), null)
  assert.deepStrictEqual([token.unlock(), other.unlock()], [true, true])
  assert.strictEqual(locks.tryHold('x', { mode: 'shared' }), null)
  assert.strictEqual((await waiting).unlock(), true)
})

testLocks('hold, holdAsync and requests are in one line, first come, first served', async t => {
  const order = []
  const first = locks.tryHold('x')
  const waits = []
  const next = async (promise) => {
    waits.push(promise)
    await untilPending(waits.length)
  }
  await next(locks.holdAsync('x').then(token => order.push('holdAsync') && token.unlock()))
  const blocked = startWorker(t, ({ api: { locks } }) => {
    const token = locks.hold('x')
    return [token.name, token.mode, token.locked, token.unlock(), token.unlock(), token.locked]
  })
  await next(blocked.done().then(told => {
    assert.deepStrictEqual(told, ['x', 'exclusive', true, true, false, false])
    order.push('hold')
  }))
  await next(locks.request('x', () => { order.push('request') }))
  const readers = [1, 2].map(() => locks.holdAsync('x', { mode: 'shared' }))
  await untilPending(5)
  first.unlock()
  await Promise.all(waits.concat(readers.map(promise => promise.then(() => order.push('reader')))))
  order.splice(order.indexOf('hold'), 1) // told in a turn of its own
  assert.deepStrictEqual(order, ['holdAsync', 'request', 'reader', 'reader'])
  for (const reader of readers) assert.strictEqual((await reader).unlock(), true)
})

testLocks('unlock() is effective once, from anywhere: a timer, or a callback of the same name', async () => {
  const token = await locks.holdAsync('x')
  await new Promise(resolve => setTimeout(() => resolve(assert.strictEqual(token.unlock(), true)), 1))
  const outer = await locks.holdAsync('x', { mode: 'shared' })
  assert.strictEqual(await locks.request('x', { mode: 'shared' }, () => outer.unlock()), true)
  const [one, two] = [locks.tryHold('x'), locks.tryHold('y')]
  assert.deepStrictEqual([one.unlock(), one.unlock(), two.locked, two.unlock()], [true, false, true, true])
  const again = locks.tryHold('x')
  assert.deepStrictEqual([one.unlock(), one.abandon(), one.locked, again.locked], [false, false, false, true])
  again.unlock()
})

testLocks('using: the token unlocks at the end of a block', async t => {
  if (typeof Symbol.dispose !== 'symbol') t.skip('this Node has no Symbol.dispose')
  const token = locks.tryHold('x')
  assert.strictEqual(token[Symbol.dispose](), undefined)
  assert.strictEqual(token[Symbol.dispose](), undefined)
  assert.strictEqual(token.locked, false)
  const robbed = locks.tryHold('x')
  const thief = await locks.holdAsync('x', { steal: true })
  robbed[Symbol.dispose]()
  assert.deepStrictEqual([robbed.stolen, thief.locked, thief.unlock()], [true, true, true])
})

// ——— arguments ———

/** Calls that fail: the arguments, the name of the error, a part of its message. */
const WRONG = [
  [[], 'TypeError', 'name is required, but there are 0 arguments'],
  [['x', 1], 'TypeError', 'options must be an object, not the number 1'],
  [['x', 'shared'], 'TypeError', 'options must be an object, not the string "shared"'],
  [['x', { mode: 'foo' }], 'TypeError', 'options.mode must be "exclusive" or "shared", not the string "foo"'],
  [['x', { mode: null }], 'TypeError', 'options.mode must be "exclusive" or "shared", not null'],
  [['x', { unknown: 1 }], 'TypeError', 'options may have mode'],
  [['x', { ifAvailable: true }], 'TypeError', 'not "ifAvailable"'],
  [['x', { repair () {} }], 'TypeError', 'not "repair"'],
  [['-x'], 'NotSupportedError', 'name must not begin with "-"'],
  [[Symbol('x')], 'TypeError', 'ymbol']
]
const OF_HOLD_ASYNC = [
  [['x', { signal: null }], 'TypeError', 'signal must be an AbortSignal'],
  [['x', { timeout: '5' }], 'TypeError', 'timeout must be a number of milliseconds, not the string "5"'],
  [['x', { timeout: NaN }], 'TypeError', 'timeout must be a number of milliseconds'],
  [['x', { steal: true, mode: 'shared' }], 'NotSupportedError', 'with steal, mode must be "exclusive"'],
  [['x', { steal: true, timeout: 5 }], 'NotSupportedError', 'timeout and steal cannot be combined'],
  [['x', { steal: true, signal: new TinyController().signal }], 'NotSupportedError', 'signal and steal cannot be']
]
const OF_TRY_HOLD = ['timeout', 'signal', 'steal'].map(option => (
  [['x', { [option]: undefined }], 'TypeError', `options may have mode, not "${option}"`]))

function assertError (error, name, text, form) {
  assert.ok(error instanceof Error)
  assert.strictEqual(error.name, name, error.message)
  assert.ok(error.message.startsWith(form) || error instanceof TypeError, error.message)
  assert.ok(error.message.includes(text), error.message)
}

testLocks('wrong arguments are errors that name them, and nothing is requested', async () => {
  for (const [args, name, text] of WRONG.concat(OF_TRY_HOLD)) {
    assertError(errorOf(() => locks.tryHold(...args)), name, text, 'tryHold')
  }
  for (const [args, name, text] of WRONG.concat(OF_HOLD_ASYNC)) {
    assertError(await rejection(locks.holdAsync(...args)), name, text, 'holdAsync')
  }
  // On main it is refused for that, once its arguments are right.
  for (const [args, name, text] of WRONG) assertError(errorOf(() => locks.hold(...args)), name, text, 'hold')
  assert.strictEqual(errorOf(() => locks.hold('x')).message, 'hold would block the main thread: use holdAsync()')
  for (const option of ['signal', 'steal']) {
    const error = errorOf(() => locks.hold('x', { [option]: true }))
    assert.strictEqual(error.message, `hold blocks, and has no ${option}: use holdAsync()`)
  }
})

testLocks('names and options are converted as those of request, from left to right, then checked', async () => {
  const log = []
  const trace = (name, value) => ({ get () { log.push(name); return value }, enumerable: true })
  const given = (keys, values) => keys.reduce(
    (options, key) => Object.defineProperty(options, key, trace(key, values[key])), {})
  const name = (text) => converted(text, () => { log.push('name') })
  const all = ['timeout', 'steal', 'signal', 'mode']
  await rejection(locks.holdAsync(name('-'), given(all, {})))
  assert.deepStrictEqual(log.splice(0), ['name', 'mode', 'signal', 'steal', 'timeout'])
  await rejection(locks.holdAsync(name('-'), given(all, { mode: 'foo', signal: 1 })))
  assert.deepStrictEqual(log.splice(0), ['name', 'mode'])
  errorOf(() => locks.tryHold(name('-'), given(['mode'], {})))
  assert.deepStrictEqual(log.splice(0), ['name', 'mode'])
  for (const [given, name] of [[1, '1'], [null, 'null'], [undefined, 'undefined'], ['\uD800', '\uD800'], ['', '']]) {
    for (const form of Object.keys(FORMS)) {
      const token = await FORMS[form](given)
      assert.deepStrictEqual([token.name, token.unlock()], [name, true])
    }
  }
  const inherited = Object.create({ mode: 'shared' })
  const token = locks.tryHold('x', inherited)
  assert.deepStrictEqual([token.mode, token.unlock()], ['shared', true])
})

testLocks('called on another object: a TypeError, as a rejection where there is a promise', async () => {
  const { hold, holdAsync, tryHold } = LockManager.prototype
  for (const other of [undefined, null, {}, LockManager.prototype, Object.create(locks)]) {
    for (const form of [hold, tryHold]) {
      assert.ok(errorOf(() => form.call(other, 'x')).message.includes('illegal invocation'))
    }
    assert.ok((await rejection(holdAsync.call(other, 'x'))).message.includes('illegal invocation'))
  }
  const token = locks.tryHold('x')
  const NamedToken = Object.getPrototypeOf(token)
  const ofLock = new api.AsyncLock().tryLock()
  for (const key of ['name', 'mode', 'locked', 'tookOver', 'stolen', 'signal']) {
    const { get } = Object.getOwnPropertyDescriptor(NamedToken, key)
    for (const other of [undefined, {}, NamedToken, ofLock]) {
      assert.throws(() => get.call(other), { name: 'TypeError', message: /token of a name/ })
    }
  }
  for (const key of ['unlock', 'abandon']) {
    assert.throws(() => NamedToken[key].call({}), { name: 'TypeError', message: /token of a name/ })
  }
  // Nor is it a Lock.
  for (const key of ['name', 'abandon']) {
    const { get, value } = Object.getOwnPropertyDescriptor(api.Lock.prototype, key)
    assert.throws(() => (get || value).call(token), { name: 'TypeError', message: /must be a Lock/ })
  }
  ofLock.unlock()
  token.unlock()
})

testLocks('the members of LockManager.prototype are as WebIDL has them', () => {
  for (const form of ['hold', 'holdAsync', 'tryHold']) {
    const { enumerable, configurable, writable, value } = Object.getOwnPropertyDescriptor(LockManager.prototype, form)
    assert.deepStrictEqual([enumerable, configurable, writable, value.name, value.length], [true, true, true, form, 1])
  }
})

// ——— giving up ———

testLocks('a timeout: a TimeoutError with the holder, and nothing is left in the line', async t => {
  const token = locks.tryHold('x')
  for (const timeout of [-1, 0, 5]) {
    const error = await rejection(locks.holdAsync('x', { timeout }))
    const { code, holder, id, kind, message, name } = error
    assert.deepStrictEqual([name, code, kind, holder], ['TimeoutError', 'ERR_TIMEOUT', 'named', 0])
    assert.strictEqual(id, api.snapshot().held[0].id)
    assert.strictEqual(message,
      `Timed out after ${Math.max(timeout, 0)} ms waiting for the lock named "x", held by thread 0`)
  }
  const told = await startWorker(t, ({ api: { locks } }) => [0, 5].map(timeout => {
    try {
      return locks.hold('x', { timeout }).name
    } catch ({ code, holder }) {
      return [code, holder]
    }
  })).done()
  assert.deepStrictEqual(told, [['ERR_TIMEOUT', 0], ['ERR_TIMEOUT', 0]])
  assert.strictEqual(await pending(), 0)
  token.unlock()
  const free = await locks.holdAsync('x', { timeout: 0 })
  assert.strictEqual(free.unlock(), true)
})

testLocks('a signal ends the wait by its reason; after the grant, nothing happens', async () => {
  const reason = new Error('the reason')
  const aborted = new TinyController({ reason })
  aborted.abort()
  assert.strictEqual(await rejection(locks.holdAsync('x', { signal: aborted.signal })), reason)
  const token = locks.tryHold('x')
  for (const given of [reason, undefined]) {
    const controller = new TinyController({ reason: given })
    const waiting = locks.holdAsync('x', { signal: controller.signal })
    await untilPending(1)
    controller.abort()
    const error = await rejection(waiting)
    if (given === undefined) assert.strictEqual(error.name, 'AbortError')
    else assert.strictEqual(error, reason)
    assert.strictEqual(await pending(), 0)
  }
  const late = new TinyController({ reason })
  const granted = locks.holdAsync('x', { signal: late.signal })
  token.unlock()
  const next = await granted
  late.abort()
  assert.deepStrictEqual([late.listeners.size, next.locked, next.unlock()], [0, true, true])
})

// ——— stealing ———

testLocks('the token of a stolen name costs the same, however much its thread holds', async () => {
  const tokens = Array.from({ length: 50000 }, (_, n) => locks.tryHold(`x${n}`))
  const robbed = tokens[0]
  tokens[0] = await locks.holdAsync('x0', { steal: true })
  assert.ok(robbed.stolen)
  const timeOf = (token) => {
    const start = now()
    for (let n = 0; n < 300; n++) assert.strictEqual(token.locked, token !== robbed)
    return now() - start
  }
  await onAQuietMachine(() => {
    const [ofLive, ofRobbed] = [timeOf(tokens[1]), timeOf(robbed)]
    assert.ok(ofRobbed < 10 * ofLive, `${ofRobbed} ms, and ${ofLive} ms of a token that holds`)
  })
  for (const token of tokens) token.unlock()
})

testLocks('steal takes the name from tokens and callbacks, which learn of it; the thief has tookOver', async () => {
  const robbed = locks.tryHold('x')
  const { signal } = robbed
  const waiting = locks.holdAsync('x')
  const thief = await locks.holdAsync('x', { steal: true })
  assert.deepStrictEqual([thief.tookOver, thief.ownerDied, thief.locked], [true, false, true])
  assert.deepStrictEqual([robbed.stolen, robbed.locked, robbed.unlock(), robbed.abandon()], [true, false, false, false])
  assert.strictEqual(robbed.ownerDied, false)
  if (HAS_SIGNALS) {
    assert.deepStrictEqual([signal.aborted, robbed.signal === signal], [true, true])
    assert.strictEqual(thief.signal.aborted, false)
  }
  const last = await locks.holdAsync('x', { steal: true })
  assert.deepStrictEqual([thief.stolen, last.tookOver, thief.unlock()], [true, true, false])
  assert.strictEqual(await pending(), 1)
  last.unlock()
  assert.strictEqual((await waiting).unlock(), true)

  const callback = request('x')
  await callback.granted
  const other = await locks.holdAsync('x', { steal: true })
  assert.strictEqual((await rejection(callback.promise)).name, 'AbortError')
  const byRequest = await locks.request('x', { steal: true }, ({ tookOver }) => [tookOver, other.stolen])
  assert.deepStrictEqual([byRequest, other.unlock()], [[true, true], false])
  assert.deepStrictEqual([(await locks.holdAsync('x', { steal: true })).unlock(), await toldOf('x')], [true, false])
})

testLocks('of a free name, steal takes nothing over', async () => {
  const token = await locks.holdAsync('x', { steal: true })
  assert.deepStrictEqual([token.tookOver, token.unlock()], [false, true])
})

testLocks('the loser in another thread learns of it by itself, and its unlock() is false', async t => {
  if (!HAS_SIGNALS) t.skip('this Node has no AbortController')
  const loser = startWorker(t, async ({ api: { locks }, post }) => {
    const token = locks.hold('x')
    const { signal } = token
    const aborted = new Promise(resolve => signal.addEventListener('abort', resolve))
    // What is held keeps no thread alive.
    const alive = setInterval(() => {}, 1000)
    post('held')
    await aborted
    clearInterval(alive)
    const { name } = signal.reason || {}
    return [signal.aborted, name, token.stolen, token.locked, token.unlock(), token.abandon()]
  })
  await loser.next()
  const thief = await locks.holdAsync('x', { steal: true })
  const [aborted, name, ...rest] = await loser.done()
  assert.deepStrictEqual([aborted, rest], [true, [true, false, false, false]])
  assert.ok(name === 'AbortError' || name === undefined)
  assert.deepStrictEqual([thief.locked, thief.unlock()], [true, true])
})

testLocks('a name that was granted and stolen before its thread heard of either is not given', async t => {
  const flags = words(3)
  const [HELD, PENDING, STOLEN] = [0, 1, 2]
  const worker = startWorker(t, { flags, HELD, PENDING, STOLEN }, async ({ api: { locks }, data }) => {
    const { flags, HELD, PENDING, STOLEN } = data
    const token = locks.hold('x')
    Atomics.store(flags, HELD, 1)
    while (Atomics.load(flags, PENDING) === 0);
    token.unlock()
    const thief = await locks.holdAsync('x', { steal: true })
    Atomics.store(flags, STOLEN, 1)
    thief.unlock()
  })
  await until(() => Atomics.load(flags, HELD) === 1)
  const waiting = locks.holdAsync('x')
  Atomics.store(flags, PENDING, 1)
  // This thread's event loop stands still until both have happened.
  while (Atomics.load(flags, STOLEN) === 0);
  assert.strictEqual((await rejection(waiting)).name, 'AbortError')
  await worker.done()
})

// ——— deaths ———

testLocks('abandon(): the next exclusive holder sees it; of a share it is a TypeError, which stays held', async () => {
  for (const form of Object.keys(FORMS)) {
    const token = await FORMS[form]('x')
    assert.deepStrictEqual([token.abandon(), token.abandon(), token.unlock()], [true, false, false])
    assert.strictEqual(token.locked, false)
    const next = await FORMS[form]('x')
    assert.deepStrictEqual([next.ownerDied, next.unlock()], [true, true])
    assert.strictEqual(await toldOf('x'), false)
  }
  const share = locks.tryHold('x', { mode: 'shared' })
  assert.throws(() => share.abandon(), { name: 'TypeError', message: /exclusively, not shared: use unlock\(\)/ })
  assert.deepStrictEqual([share.locked, share.unlock(), share.abandon()], [true, true, false])
  assert.strictEqual(await toldOf('x'), false)
})

for (const how of ['exit', 'terminate']) {
  testLocks(`a thread that ends with a name (${how}): who waits, and who comes later, is told`, async t => {
    const die = (t) => startWorker(t, { exits: how === 'exit' }, ({ api: { locks }, data: { exits }, keep, post }) => {
      keep(locks.hold('x'))
      keep(locks.tryHold('read', { mode: 'shared' }))
      post('held')
      return exits ? new Promise(() => setImmediate(() => process.exit())) : new Promise(() => {})
    })
    for (const waits of [true, false]) {
      const victim = die(t)
      victim.done().catch(() => {})
      await victim.next()
      const waiting = waits && locks.holdAsync('x')
      if (how === 'terminate') await victim.terminate()
      await victim.exited
      const token = await (waits ? waiting : locks.holdAsync('x'))
      assert.deepStrictEqual([token.ownerDied, token.tookOver, token.unlock()], [true, false, true])
      const [next, read] = [locks.tryHold('x'), locks.tryHold('read')]
      assert.deepStrictEqual([next.ownerDied, read.ownerDied], [false, false])
      assert.deepStrictEqual([next.unlock(), read.unlock()], [true, true])
    }
  })
}

testLocks('a thread that is terminated while it waits, or before it heard of its grant, keeps no name', async t => {
  for (const blocks of [true, false]) {
    const token = locks.tryHold('x')
    const victim = startWorker(t, { blocks }, ({ api: { locks }, busy, data: { blocks }, post }) => {
      post('asks')
      if (blocks) return locks.hold('x').name
      locks.holdAsync('x')
      // Its event loop never runs again.
      busy(1e6)
    })
    victim.done().catch(() => {})
    await untilPending(1)
    if (!blocks) token.unlock()
    await victim.terminate()
    token.unlock()
    const next = await locks.holdAsync('x')
    assert.deepStrictEqual([next.locked, next.unlock()], [true, true])
  }
})

// ——— waiting for oneself ———

testLocks('hold: a thread does not wait for itself, by whichever form it holds or awaits', async t => {
  const told = await startWorker(t, async ({ api: { locks } }) => {
    const attempt = (options) => {
      try {
        return locks.hold('x', options).unlock()
      } catch ({ code, message }) {
        return `${code}: ${message}`
      }
    }
    const told = []
    const token = locks.hold('x')
    told.push(attempt(), attempt({ timeout: 1e9 }), attempt({ mode: 'shared' }))
    const promise = locks.holdAsync('x')
    token.unlock()
    told.push(attempt())
    ;(await promise).unlock()
    told.push(locks.requestSync('x', () => attempt()))
    told.push(await locks.request('x', () => attempt()))
    const share = locks.tryHold('x', { mode: 'shared' })
    told.push(attempt({ mode: 'shared' }), attempt(), share.unlock(), attempt())
    // Another name, and what a callback holds by a token beyond its end.
    const other = locks.requestSync('y', () => locks.hold('x'))
    told.push(other.locked, other.unlock())
    return told
  }).done()
  const text = 'ERR_DEADLOCK: hold: would wait for the lock named "x", which this thread itself already '
  const [holds, awaits] = [text + 'holds', text + 'awaits']
  // It was granted to the promise, of which this thread has not heard.
  assert.deepStrictEqual(told,
    [holds, holds, holds, awaits, holds, holds, true, holds, true, true, true, true])
})

testLocks('hold: threads that would wait for one another get ERR_DEADLOCK with the cycle, and one goes on', async t => {
  const met = words(1)
  const ends = [['a', 'b'], ['b', 'a']].map(names => startWorker(t, { met, names }, ({ api, data }) => {
    const { met, names: [mine, other] } = data
    const token = api.locks.hold(mine)
    Atomics.add(met, 0, 1)
    while (Atomics.load(met, 0) < 2);
    try {
      return api.locks.hold(other).unlock()
    } catch ({ code, cycle }) {
      return [code, cycle.map(({ holds, waitsFor }) => [holds.name, waitsFor.name]).sort().join()]
    } finally {
      token.unlock()
    }
  }).done())
  const told = (await Promise.all(ends)).sort()
  assert.deepStrictEqual(told, [['ERR_DEADLOCK', 'a,b,b,a'], true].sort())
})

// ——— hostile code ———

testLocks('a token that other code has written into releases what it stands for, and nothing else', async () => {
  const lock = new api.AsyncLock()
  const [other, held] = [locks.tryHold('y'), lock.tryLock()]
  const serial = Object.getOwnPropertySymbols(other).find(symbol => String(symbol).includes('serial'))
  for (const forged of [other[serial], held[serial], -1, NaN, 'x', null]) {
    const token = locks.tryHold('x')
    token[serial] = forged
    assert.deepStrictEqual([token.locked, token.stolen], [true, false])
    assert.deepStrictEqual([token.unlock(), token.locked, token.unlock(), token.abandon()], [true, false, false, false])
    token[serial] = forged
    assert.deepStrictEqual([token.locked, token.unlock(), token.abandon()], [false, false, false])
    assert.deepStrictEqual([other.locked, held.locked, locks.tryHold('y')], [true, true, null])
  }
  const token = locks.tryHold('x')
  assert.ok(Object.isFrozen(Object.freeze(token)))
  assert.deepStrictEqual([token.unlock(), token.unlock(), token.locked], [true, false, false])
  // One that inherits from it is one for the same hold; a proxy, too.
  const heir = Object.create(other)
  assert.deepStrictEqual([heir.name, heir.locked, heir.unlock(), other.locked], ['y', true, true, false])
  const behind = new Proxy(locks.tryHold('x'), {})
  assert.deepStrictEqual([behind.name, behind.unlock(), behind.unlock()], ['x', true, false])
  held.unlock()
})

testLocks('a Condition takes no token of a name', async () => {
  const condition = new api.Condition()
  const token = locks.tryHold('x')
  const error = await rejection(condition.waitAsync(token))
  assert.ok(error instanceof TypeError && error.message.includes('of a name'), error.message)
  assert.deepStrictEqual([token.locked, token.unlock()], [true, true])
})
