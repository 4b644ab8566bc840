'use strict'
// oldest: force (there DOMException is missing)

// `locks` in one thread: the interfaces, the order of checks, every error, and when what happens. threads.test.js has
// what concerns several threads.

const assert = require('assert')
const util = require('util')
const vm = require('vm')
const { load } = require('../../lib/agent/load-binding')
const { test } = require('../harness')
const { api } = require('../subject')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { hold, holding, testLocks: testNames } = require('../fixtures/named-locks')
const { atTheEndOfTheStack, converted } = require('../fixtures/odd-calls')
const { prints, runChild, sleep } = require('../fixtures/queue-toolbox')

const { Lock, LockManager, locks } = api
const binding = load()

/** Tests, and checks that no name is left behind; at once, in one thread. */
const testLocks = (title, fn) => testNames(title, async t => {
  await fn(t)
  assert.strictEqual(binding.nameCount(), 0)
})

const isTypeError = (text) => (error) => error instanceof TypeError && error.message.includes(text)

async function rejectsWith (promise, name, text) {
  const error = await rejection(promise)
  assert.strictEqual(error.name, name)
  assert.ok(error instanceof Error)
  assert.ok(error.message.includes(text), error.message)
  return error
}

const never = () => { throw new Error('the callback must not run') }
const isFree = (name) => locks.request(name, { ifAvailable: true }, lock => lock !== null)

// ——— the interfaces ———

test('LockManager and Lock have the shape that WebIDL gives them', async () => {
  const shape = (object, name) => {
    const { value, get, set, enumerable, configurable, writable } = Object.getOwnPropertyDescriptor(object, name)
    return value === undefined
      ? { getter: get.name, set, enumerable, configurable }
      : { name: value.name, length: value.length, enumerable, configurable, writable }
  }
  const method = (name, length) => ({ name, length, enumerable: true, configurable: true, writable: true })
  assert.deepStrictEqual(shape(LockManager.prototype, 'request'), method('request', 2))
  assert.deepStrictEqual(shape(LockManager.prototype, 'requestSync'), method('requestSync', 2))
  assert.deepStrictEqual(shape(LockManager.prototype, 'query'), method('query', 0))
  for (const name of ['name', 'mode', 'ownerDied']) {
    const getter = { getter: 'get ' + name, set: undefined, enumerable: true, configurable: true }
    assert.deepStrictEqual(shape(Lock.prototype, name), getter)
  }
  for (const Class of [Lock, LockManager]) {
    assert.strictEqual(Class.length, 0)
    const tag = { value: Class.name, enumerable: false, configurable: true, writable: false }
    assert.deepStrictEqual(Object.getOwnPropertyDescriptor(Class.prototype, Symbol.toStringTag), tag)
    assert.throws(() => new Class(), isTypeError('illegal constructor'))
  }
  assert.ok(locks instanceof LockManager)
  assert.deepStrictEqual(Reflect.ownKeys(locks), [])
  assert.strictEqual(String(locks), '[object LockManager]')
  assert.strictEqual(require('../../pure').locks, require('../..').locks)
})

testLocks('a Lock has name, mode and ownerDied, and shows them', () => locks.request('x', { mode: 'shared' }, lock => {
  assert.ok(lock instanceof Lock)
  assert.deepStrictEqual([lock.name, lock.mode, lock.ownerDied], ['x', 'shared', false])
  assert.strictEqual(util.inspect(lock), "Lock { name: 'x', mode: 'shared', ownerDied: false }")
  assert.strictEqual(util.inspect(Object.create(Lock.prototype)), 'Lock {}')
  assert.throws(() => { lock.name = 'y' }, TypeError)
}))

testLocks('called on another object: a TypeError, as a rejection where there is a promise', async () => {
  const { request, requestSync, query } = LockManager.prototype
  for (const other of [undefined, null, {}, LockManager.prototype, Object.create(locks)]) {
    await rejectsWith(request.call(other, 'x', never), 'TypeError', 'illegal invocation')
    await rejectsWith(query.call(other), 'TypeError', 'illegal invocation')
    assert.throws(() => requestSync.call(other, 'x', never), isTypeError('illegal invocation'))
    const { get } = Object.getOwnPropertyDescriptor(Lock.prototype, 'name')
    assert.throws(() => get.call(other), isTypeError('illegal invocation'))
  }
})

// ——— arguments ———

testLocks('arguments of a wrong type are TypeErrors that name them, and nothing is requested', async () => {
  const cases = [
    [[], 'name and callback are required, but there are 0 arguments'],
    [['x'], 'name and callback are required, but there is 1 argument'],
    [['x', undefined], 'callback must be a function, not undefined'],
    [['x', {}], 'callback must be a function, not an object'],
    [['x', {}, 1], 'callback must be a function, not the number 1'],
    // Two arguments are a name and a callback, three have options.
    [['x', never, undefined], 'callback must be a function, not undefined'],
    [['x', 1, never], 'options must be an object, not the number 1'],
    [['x', 'shared', never], 'options must be an object, not the string "shared"'],
    [['x', { mode: 'foo' }, never], 'options.mode must be "exclusive" or "shared", not the string "foo"'],
    [['x', { mode: null }, never], 'options.mode must be "exclusive" or "shared", not null'],
    [['x', { signal: null }, never], 'signal must be an AbortSignal'],
    [['x', { signal: {} }, never], 'signal must be an AbortSignal'],
    [['x', { timeout: '5' }, never], 'timeout must be a number of milliseconds, not the string "5"'],
    [['x', { timeout: NaN }, never], 'timeout must be a number of milliseconds'],
    [[Symbol('x'), never], 'Symbol']
  ]
  for (const [args, text] of cases) await rejectsWith(locks.request(...args), 'TypeError', text)
})

testLocks('options may be undefined, null, or a function; unknown ones are ignored', async () => {
  const modeWith = (options) => locks.request('x', options, lock => lock.mode)
  const none = { mode: undefined, steal: 0, ifAvailable: '', signal: undefined, timeout: undefined }
  for (const options of [undefined, null, none]) assert.strictEqual(await modeWith(options), 'exclusive')
  const shared = { mode: 'shared' }
  const converts = { mode: converted('shared', () => {}), later: 1 }
  for (const options of [Object.assign(() => {}, shared), Object.create(shared), converts]) {
    assert.strictEqual(await modeWith(options), 'shared')
  }
})

testLocks('names are converted to strings, any UTF-16, and must not begin with a hyphen', async () => {
  const object = converted('x', () => {})
  const conversions = [[1, '1'], [null, 'null'], [undefined, 'undefined'], [object, 'x'], [['a', 'b'], 'a,b']]
  for (const [given, name] of conversions) assert.strictEqual(await locks.request(given, lock => lock.name), name)
  const odd = ['', '\0', 'a\0b', '\uD800', '\uDC00', '\uDC00\uD800', '\uFFFD', '\uFFFF', 'ä漢😀', 'x'.repeat(1e5)]
  const held = odd.map(name => hold(name))
  const names = await Promise.all(held.map(({ granted }) => granted)).then(list => list.map(({ name }) => name))
  assert.deepStrictEqual(names, odd)
  assert.deepStrictEqual((await locks.query()).held.map(({ name }) => name).sort(), odd.slice().sort())
  held.forEach(({ release }) => release())
  await Promise.all(held.map(({ promise }) => promise))
  const hyphen = 'name must not begin with "-"'
  for (const name of ['-', '-x']) await rejectsWith(locks.request(name, never), 'NotSupportedError', hyphen)
  await locks.request('x-', () => {})
  const reason = new Error('from toString')
  assert.strictEqual(await rejection(locks.request(converted('x', () => { throw reason }), never)), reason)
})

testLocks('arguments are converted from left to right, options in the order of their names, then checked', async () => {
  const log = []
  const trace = (name, value) => ({ get () { log.push(name); return value }, enumerable: true })
  const given = (values) => ['timeout', 'steal', 'signal', 'mode', 'ifAvailable'].reduce(
    (options, key) => Object.defineProperty(options, key, trace(key, values[key])), {})
  const name = (text) => converted(text, () => { log.push('name') })
  await rejectsWith(locks.request(name('-'), given({}), 1), 'TypeError', 'callback')
  assert.deepStrictEqual(log.splice(0), ['name', 'ifAvailable', 'mode', 'signal', 'steal', 'timeout'])
  await rejectsWith(locks.request(name('-'), given({ mode: 'foo', signal: 1 }), 1), 'TypeError', 'mode')
  assert.deepStrictEqual(log.splice(0), ['name', 'ifAvailable', 'mode'])
  await rejectsWith(locks.request(name('-'), given({ signal: 1 }), 1), 'TypeError', 'signal')
  assert.deepStrictEqual(log.splice(0), ['name', 'ifAvailable', 'mode', 'signal'])

  const { signal, abort } = new TinyController({ reason: 'the reason' })
  abort()
  const ask = (options, name = 'x') => locks.request(name, options, never)
  const check = (options, text, name) => rejectsWith(ask(options, name), 'NotSupportedError', text)
  const all = { steal: true, ifAvailable: true, mode: 'shared', signal, timeout: 5 }
  const without = (...names) => names.reduce((rest, key) => Object.assign({}, rest, { [key]: undefined }), all)
  await check(all, 'name must not begin', '-')
  await check(all, 'steal and ifAvailable cannot be combined')
  await check(without('ifAvailable'), 'with steal, mode must be "exclusive"')
  await check(without('ifAvailable', 'mode'), 'signal and steal cannot be combined')
  await check(without('steal'), 'signal and ifAvailable cannot be combined')
  await check({ steal: true, timeout: 5 }, 'timeout and steal cannot be combined')
  await check({ ifAvailable: true, timeout: 5 }, 'timeout and ifAvailable cannot be combined')
  assert.strictEqual(await rejection(locks.request('x', { signal, timeout: 5 }, never)), 'the reason')
})

testLocks('the errors of the standard are DOMExceptions, of the global class where there is one', async () => {
  const error = await rejection(locks.request('-', never))
  const holder = await holding('x')
  locks.request('x', { steal: true }, () => {})
  const stolen = await rejection(holder.promise)
  assert.deepStrictEqual([error.name, error.code, stolen.name, stolen.code], ['NotSupportedError', 9, 'AbortError', 20])
  assert.strictEqual(error.constructor.name, 'DOMException')
  assert.strictEqual(stolen.constructor, error.constructor)
  const { DOMException = error.constructor } = global
  assert.strictEqual(error.constructor, DOMException)
})

// ——— holding ———

testLocks('the callback runs after request has returned, in the same turn if the name is free', async () => {
  const log = []
  setImmediate(() => log.push('next turn'))
  const promise = locks.request('x', () => { log.push('callback') })
  log.push('returned')
  await promise
  assert.deepStrictEqual(log, ['returned', 'callback'])
})

testLocks('the promise gives what the callback returns, throws, or resolves to, with the name free', async () => {
  const reason = { then: never }
  assert.strictEqual(await locks.request('x', () => 5), 5)
  assert.strictEqual(await locks.request('x', () => null), null)
  assert.strictEqual(await locks.request('x', async () => 6), 6)
  assert.strictEqual(await locks.request('x', () => ({ then: (resolve) => resolve(7) })), 7)
  const fail = () => { throw reason }
  const thenable = { get then () { return fail() } }
  for (const callback of [fail, async () => fail(), () => thenable]) {
    const outcome = await locks.request('x', callback).then(never, error => ({ error }))
    assert.strictEqual(outcome.error, reason)
  }
  const free = await locks.request('x', () => {}).then(() => isFree('x'))
  assert.strictEqual(free, true)
})

testLocks('requests are granted in the order in which they were made; readers together', async () => {
  const log = []
  const ask = (name, options) => {
    const held = hold('x', options)
    held.granted.then(() => log.push(name))
    return held
  }
  const modeOf = (name) => 'adf'.includes(name) ? 'exclusive' : 'shared'
  const [a, b, c, d, e, f] = Array.from('abcdef', name => ask(name, { mode: modeOf(name) }))
  const query = async () => {
    const { held, pending } = await locks.query()
    return [held, pending].map(list => list.map(({ mode }) => mode[0]).join(''))
  }
  await a.granted
  assert.deepStrictEqual(await query(), ['e', 'ssese'])
  a.release()
  await Promise.all([b.granted, c.granted])
  // The reader that came after a writer waits for it.
  assert.deepStrictEqual(await query(), ['ss', 'ese'])
  b.release()
  await b.promise
  assert.deepStrictEqual(await query(), ['s', 'ese'])
  c.release()
  for (const next of [d, e, f]) {
    await next.granted
    next.release()
  }
  await f.promise
  assert.deepStrictEqual(log, ['a', 'b', 'c', 'd', 'e', 'f'])
})

testLocks('ifAvailable: null if it would have to wait, whatever it would wait for', async () => {
  const ask = (mode) => locks.request('x', { ifAvailable: true, mode }, lock => lock && lock.mode)
  const reader = hold('x', { mode: 'shared' })
  assert.deepStrictEqual([await ask('shared'), await ask('exclusive')], ['shared', null])
  const writer = hold('x')
  // A request that waits comes before it.
  assert.deepStrictEqual([await ask('shared'), await ask('exclusive')], [null, null])
  reader.release()
  await writer.granted
  assert.strictEqual(await ask('shared'), null)
  const reason = new Error('from the callback')
  const fail = () => { throw reason }
  for (const callback of [fail, async () => fail()]) {
    assert.strictEqual(await rejection(locks.request('x', { ifAvailable: true }, callback)), reason)
  }
  writer.release()
  await writer.promise
})

testLocks('what a callback holds does not depend on the object that it got', async () => {
  let kept
  await locks.request('x', async lock => {
    kept = lock
    Object.getOwnPropertySymbols(lock).forEach(symbol => { lock[symbol] = 'y' })
    assert.strictEqual(await isFree('x'), false)
  })
  assert.strictEqual(await isFree('x'), true)
  assert.throws(() => kept.name, isTypeError('illegal invocation'))
})

testLocks('a setter where a Lock keeps its grant gets a function without properties; the name is held', async () => {
  const symbol = await locks.request('x', lock => Object.getOwnPropertySymbols(lock)[0])
  const got = []
  const { prototype } = Object
  Object.defineProperty(prototype, symbol, { set (value) { got.push(value) }, configurable: true })
  try {
    await locks.request('x', async () => assert.strictEqual(await isFree('x'), false))
  } finally {
    delete prototype[symbol]
  }
  assert.ok(got.length > 0)
  for (const value of got) {
    assert.deepStrictEqual([typeof value, value()], ['function', undefined])
    assert.deepStrictEqual(Reflect.ownKeys(value).sort(), ['length', 'name'])
  }
  assert.strictEqual(await isFree('x'), true)
})

// ——— signal and timeout ———

testLocks('a signal that aborts: the request leaves the line, rejected with its reason or an AbortError', async () => {
  let holder = await holding('x')
  for (const reason of ['the reason', undefined]) {
    const controller = new TinyController({ reason })
    const promise = locks.request('x', { signal: controller.signal }, never)
    const next = hold('x', { mode: 'shared' })
    assert.strictEqual((await locks.query()).pending.length, 2)
    assert.strictEqual(controller.listeners.size, 1)
    controller.abort()
    const error = await rejection(promise)
    const expected = reason === undefined ? ['AbortError', 'DOMException'] : reason
    assert.deepStrictEqual(reason === undefined ? [error.name, error.constructor.name] : error, expected)
    assert.strictEqual((await locks.query()).pending.length, 1)
    assert.strictEqual(controller.listeners.size, 0)
    await rejection(locks.request('x', { signal: controller.signal }, never))
    holder.release()
    await next.granted
    holder = hold('x')
    next.release()
    await holder.granted
  }
  holder.release()
  await holder.promise
})

testLocks('a signal that aborts and throws instead of giving a reason: the request rejects with that', async () => {
  const holder = await holding('x')
  const controller = new TinyController()
  const thrown = new Error('from the reason')
  Object.defineProperty(controller.signal, 'reason', { get () { throw thrown } })
  const promise = locks.request('x', { signal: controller.signal }, never)
  controller.abort()
  assert.strictEqual(await rejection(promise), thrown)
  assert.strictEqual((await locks.query()).pending.length, 0)
  holder.release()
  await holder.promise
})

testLocks('a signal that aborts before the callback runs, though the name was free', async () => {
  const controller = new TinyController({ reason: 'the reason' })
  const promise = locks.request('x', { signal: controller.signal }, never)
  const next = locks.request('x', () => 'next')
  controller.abort()
  assert.strictEqual(await rejection(promise), 'the reason')
  assert.strictEqual(await next, 'next')
})

testLocks('a signal that aborts after the callback has begun, or when all is over, has no effect', async () => {
  const controller = new TinyController()
  const holder = hold('x', { signal: controller.signal })
  await holder.granted
  controller.abort()
  holder.release('result')
  assert.strictEqual(await holder.promise, 'result')
  const { signal, abort, listeners } = new TinyController()
  const first = hold('x')
  const second = locks.request('x', { signal }, () => 'second')
  await first.granted
  assert.strictEqual(listeners.size, 1)
  first.release()
  assert.strictEqual(await second, 'second')
  assert.strictEqual(listeners.size, 0)
  abort()
})

testLocks('timeout: a TimeoutError, not before its time, and the request leaves the line', async () => {
  const holder = await holding('x')
  const begin = process.hrtime()
  const error = await rejectsWith(locks.request('x', { timeout: 30 }, never), 'TimeoutError', 'Timed out after 30 ms')
  const [s, ns] = process.hrtime(begin)
  assert.ok(s * 1e3 + ns / 1e6 >= 30)
  assert.strictEqual(error.code, 'ERR_TIMEOUT')
  assert.deepStrictEqual((await locks.query()).pending, [])
  for (const timeout of [0, -1, -0]) {
    await rejectsWith(locks.request('x', { timeout }, never), 'TimeoutError', 'Timed out after 0 ms')
  }
  const granted = locks.request('x', { timeout: 20000 }, () => 'granted')
  holder.release()
  assert.strictEqual(await granted, 'granted')
  assert.strictEqual(await locks.request('x', { timeout: 0 }, () => 'at once'), 'at once')
})

// ——— steal ———

testLocks('steal: all holders reject with an AbortError while their callbacks still run; the line waits', async () => {
  const log = []
  const readers = [hold('x', { mode: 'shared' }), hold('x', { mode: 'shared' })]
  await Promise.all(readers.map(({ granted }) => granted))
  const waiting = locks.request('x', () => { log.push('next') })
  const thief = hold('x', { steal: true })
  await thief.granted
  await Promise.all(readers.map(({ promise }) => rejectsWith(promise, 'AbortError', 'was stolen')))
  const { held, pending } = await locks.query()
  assert.deepStrictEqual([held.length, held[0].mode, pending.length], [1, 'exclusive', 1])
  // A holder that has lost the name gives back nothing.
  readers.forEach(({ release }) => release())
  await sleep(1)
  assert.strictEqual(await isFree('x'), false)
  log.push('release')
  thief.release('loot')
  assert.strictEqual(await thief.promise, 'loot')
  await waiting
  assert.deepStrictEqual(log, ['release', 'next'])
})

testLocks('steal before the callback has run, in the same job: it runs, and the request rejects', async () => {
  const log = []
  const first = locks.request('x', lock => { log.push(lock.name) })
  const second = locks.request('x', { steal: true }, () => 'second')
  await rejectsWith(first, 'AbortError', 'was stolen')
  assert.strictEqual(await second, 'second')
  assert.deepStrictEqual(log, ['x'])
})

testLocks('steal of what was granted, but not yet delivered', async () => {
  const [first, second] = [hold('x'), hold('x')]
  await first.granted
  first.release()
  await first.promise
  const third = locks.request('x', { steal: true }, () => 'third')
  await rejectsWith(second.promise, 'AbortError', 'was stolen')
  assert.strictEqual(await third, 'third')
})

testLocks('steal again and again: the last one has it', async () => {
  const holders = []
  for (let n = 0; n < 50; n++) holders.push(hold('x', { steal: true }))
  const last = holders.pop()
  await Promise.all(holders.map(({ promise }) => rejectsWith(promise, 'AbortError', 'was stolen')))
  await last.granted
  assert.strictEqual((await locks.query()).held.length, 1)
  last.release()
  await last.promise
})

testLocks('a callback that fails after a steal: its error is nowhere unhandled', async t => {
  const unhandled = []
  const listener = (reason) => unhandled.push(reason)
  process.on('unhandledRejection', listener)
  t.after(() => { process.removeListener('unhandledRejection', listener) })
  const holder = await holding('x')
  await locks.request('x', { steal: true }, () => {})
  await rejectsWith(holder.promise, 'AbortError', 'was stolen')
  holder.fail(new Error('too late'))
  await sleep(5)
  assert.deepStrictEqual(unhandled, [])
})

// ——— query, requestSync, ref ———

testLocks('query: dictionaries in the order of the requests', async () => {
  const holder = hold('x')
  const waiting = locks.request('x', { mode: 'shared' }, () => {})
  const { held, pending } = await locks.query()
  assert.deepStrictEqual(Object.keys(held[0]), ['clientId', 'mode', 'name'])
  assert.deepStrictEqual(held, [{ clientId: `${process.pid}-0`, mode: 'exclusive', name: 'x' }])
  assert.deepStrictEqual(pending, [{ clientId: `${process.pid}-0`, mode: 'shared', name: 'x' }])
  assert.ok(Array.isArray(held) && Array.isArray(pending))
  await holder.granted
  holder.release()
  await waiting
})

testLocks('requestSync: not on the main thread; its options are checked first, and unknown ones are errors', () => {
  const blocks = 'requestSync would block the main thread: use request()'
  assert.throws(() => locks.requestSync('x', never), isTypeError(blocks))
  const throws = (options, text) => assert.throws(() => locks.requestSync('x', options, never), isTypeError(text))
  throws({ later: 1 }, 'options may have ifAvailable, mode, repair and timeout, not "later"')
  throws({ signal: new TinyController().signal }, 'requestSync blocks, and has no signal: use request()')
  throws({ steal: true }, 'requestSync blocks, and has no steal: use request()')
  throws({ mode: 'foo' }, 'options.mode must be')
  throws(5, 'options must be an object')
  assert.throws(() => locks.requestSync('x'), isTypeError('name and callback are required'))
  assert.throws(() => locks.requestSync('-', never), { name: 'NotSupportedError' })
})

testLocks('ref and unref take the promise of a pending request', async () => {
  const holder = await holding('x')
  const waiting = locks.request('x', () => {})
  assert.deepStrictEqual([api.unref(waiting), api.ref(waiting)], [true, true])
  holder.release()
  await waiting
  assert.strictEqual(api.unref(waiting), false)
})

for (const [unref, lines] of [[false, ['granted']], [true, ['true']]]) {
  const title = 'a process does not end while another thread may grant what it awaits'
  test(unref ? `${title}, unless that is unref'd` : title, t =>
    prints(t, lines, async ({ api: { locks, unref }, say, startWorker, data }) => {
      const { next, worker } = startWorker(({ api: { locks }, post, receive }) => locks.request('x', () => {
        post('held')
        return receive()
      }))
      await next()
      worker.unref()
      const promise = locks.request('x', () => { say('granted') })
      if (data.unref) say(String(unref(promise)))
      else setTimeout(() => worker.postMessage('release'), 100).unref()
    }, { unref }))
}

test('a request that nothing can grant any more lets the process end, with a warning that has its name', async t => {
  const { lines, code, stderr } = await runChild(t, ({ api: { locks }, say }) => {
    locks.request('the name', () => new Promise(() => {}))
    locks.request('the name', () => {}).then(() => say('granted'))
  })
  assert.deepStrictEqual([lines, code], [[], 0])
  assert.ok(stderr.includes('ATOMICS_WAITASYNC_PENDING') && stderr.includes('the name'), stderr)
})

// ——— hostile surroundings ———

for (const awaited of [false, true]) {
  const which = awaited ? 'held' : 'free'
  testLocks(`near the end of the stack, a request of a ${which} name leaves nothing`, async () => {
    for (const options of [{}, { mode: 'shared' }, { ifAvailable: true }, { timeout: 20000 }, { steal: true }]) {
      if (awaited && options.steal) continue
      const holder = awaited && await holding('x')
      // A generator, which the engine does not make part of another's frame: otherwise there is room for every request
      // where there is for that.
      const attempt = function * () { yield locks.request('x', options, () => {}) }
      const { results, thrown } = atTheEndOfTheStack(() => attempt().next().value, { paddings: 6, depths: 2000 })
      if (awaited) {
        holder.release()
        await holder.promise
      }
      const counts = { fulfilled: 0, rejected: thrown }
      const count = (outcome) => () => { counts[outcome]++ }
      await Promise.all(results.map(promise => promise.then(count('fulfilled'), count('rejected'))))
      assert.ok(counts.fulfilled > 0 && counts.rejected > 0, JSON.stringify([options, counts]))
    }
  })
}

testLocks('built-ins that were replaced after the package was loaded are not used', async t => {
  const touched = []
  const replaced = [
    [Promise, 'resolve'], [Array.prototype, 'push'], [Map.prototype, 'set'], [Map.prototype, 'get'],
    [Function.prototype, 'call'], [Function.prototype, 'apply'], [WeakMap.prototype, 'get'],
    [String.prototype, 'startsWith']
  ]
  // `await` of Node 10 itself calls the `then` that it finds.
  if (!process.version.startsWith('v10.')) replaced.push([Promise.prototype, 'then'])
  const holder = await holding('x')
  const undo = replaced.map(([object, name]) => {
    const before = Object.getOwnPropertyDescriptor(object, name)
    Object.defineProperty(object, name, Object.assign({}, before, { value () { touched[touched.length] = name } }))
    return () => Object.defineProperty(object, name, before)
  })
  let waiting
  let own
  try {
    waiting = locks.request('x', { mode: 'shared', timeout: 10000 }, () => 'waited')
    own = locks.request('y', () => 'own')
    locks.query()
  } finally {
    for (let n = 0; n < undo.length; n++) undo[n]()
  }
  assert.deepStrictEqual(touched, [])
  holder.release()
  assert.deepStrictEqual(await Promise.all([waiting, own]), ['waited', 'own'])
})

testLocks('a callback and a signal of another realm', async () => {
  const callback = vm.runInNewContext('(async lock => lock.name)')
  assert.strictEqual(await locks.request('x', callback), 'x')
})
