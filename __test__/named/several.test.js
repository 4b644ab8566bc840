'use strict'
// oldest: force (there DOMException and AbortController are missing)

// locks.requestAll and holdAllAsync: several names, all or none. several-threads.test.js has the forms that block, and
// what becomes of the names of a thread that ends.

const assert = require('assert')
const util = require('util')
const { load } = require('../../lib/agent/load-binding')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { testLocks } = require('../fixtures/named-locks')
const { converted } = require('../fixtures/odd-calls')
const { now, onAQuietMachine, sleep, until } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { Lock, LockManager, UnlockToken, locks } = api
const HAS_SIGNALS = typeof AbortController === 'function'
const { nameCount } = load()

const never = () => { throw new Error('the callback was called') }
const listed = async (part) => (await locks.query())[part].map(({ name }) => name)
const held = () => listed('held')
const pending = () => listed('pending')
const untilPending = async (...names) => { while ((await pending()).join() !== names.join()) await sleep(1) }
const toldOf = (name) => locks.request(name, ({ ownerDied }) => ownerDied)
const steal = (name, callback = () => {}) => locks.request(name, { steal: true }, callback)

/** The forms that may be called on main: each gives its lock or token, and a function that ends it orderly. */
const FORMS = {
  requestAll: (names, options) => new Promise((resolve, reject) => {
    locks.requestAll(names, options, lock => new Promise(end => resolve({ lock, end }))).catch(reject)
  }),
  holdAllAsync: async (names, options) => {
    const lock = await locks.holdAllAsync(names, options)
    return { lock, end: () => lock.unlock() }
  }
}
const forEachForm = (title, fn) => {
  for (const form of Object.keys(FORMS)) testLocks(`${form}: ${title}`, t => fn(FORMS[form], form, t))
}

// ——— what they give ———

forEachForm('the names, each once, in the order of their code units; and what a Lock has', async (take, form) => {
  const given = ['b', '\uFF5E', 'a', 'b', 'B', '\u{1F600}', 'aa', '']
  const names = ['', 'B', 'a', 'aa', 'b', '\u{1F600}', '\uFF5E']
  for (const [options, mode] of [[undefined, 'exclusive'], [null, 'exclusive'], [{ mode: 'shared' }, 'shared']]) {
    const { lock, end } = await take(given, options)
    assert.deepStrictEqual([lock.names, lock.mode, lock.ownerDied, lock.stolen], [names, mode, false, false])
    assert.ok(Object.isFrozen(lock.names) && Array.isArray(lock.names))
    assert.strictEqual(lock.name, undefined)
    const { signal } = lock
    if (HAS_SIGNALS) assert.deepStrictEqual([signal.aborted, signal === lock.signal], [false, true])
    assert.ok(lock instanceof (form === 'requestAll' ? Lock : UnlockToken))
    assert.deepStrictEqual(await held(), names)
    end()
    await until(() => nameCount() === 0)
  }
  assert.deepStrictEqual(given.length, 8)
})

testLocks('they are shown with their names', async () => {
  const show = (value) => util.inspect(value, { breakLength: Infinity })
  await locks.requestAll(['a', 'b'], lock => {
    assert.strictEqual(show(lock), "Lock { names: [ 'a', 'b' ], mode: 'exclusive', ownerDied: false }")
  })
  const token = await locks.holdAllAsync(['a', 'b'])
  assert.strictEqual(show(token),
    "NamedToken { names: [ 'a', 'b' ], mode: 'exclusive', locked: true, ownerDied: false }")
  token.unlock()
  // One name has no list.
  await locks.request('a', ({ name, names }) => assert.deepStrictEqual([name, names], ['a', undefined]))
})

testLocks('requestAll: settles as its callback does, whatever that does, and nothing is held any more', async () => {
  const reason = new Error('on purpose')
  const ends = [() => 1, async () => 2, () => ({ then: resolve => resolve(3) })]
  const results = []
  for (const end of ends) results.push(await locks.requestAll(['a', 'b'], end))
  assert.deepStrictEqual(results, [1, 2, 3])
  for (const fail of [() => { throw reason }, async () => { throw reason }, () => Promise.reject(reason)]) {
    assert.strictEqual(await rejection(locks.requestAll(['a', 'b'], fail)), reason)
    assert.strictEqual(nameCount(), 0)
  }
  let isCalled = false
  const promise = locks.requestAll(['a'], () => { isCalled = true })
  assert.strictEqual(isCalled, false)
  await promise
})

testLocks('holdAllAsync: unlock() gives back all, once, from anywhere; so does the end of a block', async () => {
  const token = await locks.holdAllAsync(['a', 'b'])
  await sleep(1)
  assert.deepStrictEqual([token.locked, token.unlock(), token.locked, nameCount()], [true, true, false, 0])
  const next = await locks.holdAllAsync(['a', 'b'])
  assert.deepStrictEqual([token.unlock(), token.abandon(), token.locked, next.locked], [false, false, false, true])
  const late = locks.requestAll(['b', 'c'], ({ ownerDied }) => ownerDied)
  assert.deepStrictEqual([next.abandon(), next.abandon(), next.unlock()], [true, false, false])
  assert.deepStrictEqual([await late, await toldOf('a'), await toldOf('b')], [true, true, false])
  if (typeof Symbol.dispose !== 'symbol') return
  const disposed = await locks.holdAllAsync(['a', 'b'])
  assert.deepStrictEqual([disposed[Symbol.dispose](), disposed.locked, nameCount()], [undefined, false, 0])
})

forEachForm('ifAvailable: null if any is taken, and then nothing is held', async take => {
  const other = locks.tryHold('b')
  const { lock } = await (take === FORMS.requestAll
    ? locks.requestAll(['a', 'b', 'c'], { ifAvailable: true }, async lock => ({ lock, held: await held() }))
    : locks.holdAllAsync(['a', 'b', 'c'], { ifAvailable: true }).then(lock => ({ lock })))
  assert.strictEqual(lock, null)
  assert.deepStrictEqual(await held(), ['b'])
  other.unlock()
  const { lock: all, end } = await take(['a', 'b', 'c'], { ifAvailable: true })
  assert.deepStrictEqual(all.names, ['a', 'b', 'c'])
  end()
})

testLocks('shared: with other shares of each name, and no writer of any', async () => {
  const share = locks.tryHold('b', { mode: 'shared' })
  const token = await locks.holdAllAsync(['a', 'b'], { mode: 'shared' })
  assert.strictEqual(locks.tryHold('b'), null)
  assert.throws(() => token.abandon(), { name: 'TypeError', message: /exclusively/ })
  assert.deepStrictEqual([token.locked, token.unlock(), share.unlock()], [true, true, true])
  await locks.requestAll(['a'], { mode: 'shared' }, lock => {
    assert.throws(() => lock.abandon(), { name: 'TypeError', message: /exclusively/ })
    return locks.requestAll(['a', 'b'], { mode: 'shared' }, () => {})
  })
})

testLocks('thousands of names need no deeper stack', async () => {
  const names = Array.from({ length: 5000 }, (_, n) => 'name ' + n)
  const last = locks.tryHold('name 999')
  const waiting = locks.requestAll(names, lock => lock.names.length)
  const count = async () => (await held()).length
  while (await count() !== 5000) await sleep(1)
  last.unlock()
  assert.strictEqual(await waiting, 5000)
  const token = await locks.holdAllAsync(names)
  assert.deepStrictEqual([await count(), token.unlock(), await count()], [5000, true, 0])
})

// ——— arguments ———

/** Lists that are refused: the name of the error, a part of its message. */
const WRONG = [
  [undefined, 'TypeError', 'names must be an array, or another iterable, of names, not undefined'],
  [null, 'TypeError', 'not null'],
  [5, 'TypeError', 'not the number 5'],
  [{}, 'TypeError', 'not an object'],
  [{ [Symbol.iterator]: 5 }, 'TypeError', 'not an object'],
  [{ length: 1, 0: 'x' }, 'TypeError', 'not an object'],
  // It would be the list of its characters.
  ['ab', 'TypeError', 'not the string "ab"'],
  [[Symbol('x')], 'TypeError', 'ymbol'],
  [['a', '-b'], 'NotSupportedError', 'name must not begin with "-", as the string "-b" does'],
  [[], 'RangeError', 'names must have at least one name, and has none'],
  [new Set(), 'RangeError', 'has none']
]
const WRONG_OPTIONS = [
  [1, 'TypeError', 'options must be an object, not the number 1'],
  [{ mode: 'foo' }, 'TypeError', 'options.mode must be "exclusive" or "shared", not the string "foo"'],
  [{ steal: true }, 'NotSupportedError', 'several names cannot be stolen together'],
  [{ steal: true, mode: 'shared' }, 'NotSupportedError', 'several names cannot be stolen together'],
  [{ ifAvailable: true, timeout: 5 }, 'NotSupportedError', 'timeout and ifAvailable cannot be combined'],
  [{ ifAvailable: true, signal: new TinyController().signal }, 'NotSupportedError', 'signal and ifAvailable cannot be'],
  [{ timeout: '5' }, 'TypeError', 'timeout must be a number of milliseconds, not the string "5"'],
  [{ signal: {} }, 'TypeError', 'signal must be an AbortSignal'],
  [{ timeOut: 5 }, 'TypeError', 'options may have ifAvailable, mode']
]

forEachForm('wrong arguments are rejections that name them, and nothing is requested', async (take, form) => {
  const call = (...args) => rejection(locks[form](...args, ...form === 'requestAll' ? [never] : []))
  const assertError = (error, name, text) => {
    assert.strictEqual(error.name, name, error.message)
    assert.ok(error.message.includes(text) && (error.message.startsWith(form) || text === 'ymbol'), error.message)
  }
  for (const [names, name, text] of WRONG) assertError(await call(names, {}), name, text)
  for (const [options, name, text] of WRONG_OPTIONS) assertError(await call(['a'], options), name, text)
  assertError(await rejection(locks[form]()), 'TypeError', 'required, but there are 0 arguments')
  const { code } = await call(['a'], { steal: true })
  if (typeof DOMException === 'function') assert.strictEqual(code, DOMException.NOT_SUPPORTED_ERR)
  const repair = await call(['a'], { repair: 5 })
  assertError(repair, 'TypeError', form === 'requestAll' ? 'repair must be a function' : 'not "repair"')
  for (const other of [undefined, {}, LockManager.prototype]) {
    assertError(await rejection(locks[form].call(other, ['a'], never)), 'TypeError', 'illegal invocation')
  }
})

forEachForm('names from any iterable, converted one by one; each member of the options is read once', async take => {
  const log = []
  const note = (name, value) => ({ get () { log.push(name); return value }, enumerable: true })
  const iterable = {
    get [Symbol.iterator] () {
      log.push('iterator')
      return function * () {
        yield converted('b', () => log.push('b'))
        yield converted('a', () => log.push('a'))
        yield 7
        log.push('end')
      }
    }
  }
  const all = ['ifAvailable', 'mode', 'signal', 'steal', 'timeout']
  const options = Object.defineProperties({}, Object.assign({}, ...all.map(name => ({ [name]: note(name) }))))
  const { lock, end } = await take(iterable, options)
  assert.deepStrictEqual(lock.names, ['7', 'a', 'b'])
  assert.deepStrictEqual(log, ['iterator', 'b', 'a', 'end', ...all])
  end()
  for (const names of [new Set(['b', 'a']), new Map([['a,b']]).keys(), (function * () { yield null })()]) {
    const { lock, end } = await take(names)
    assert.deepStrictEqual(lock.names.length > 0, true)
    end()
  }
})

forEachForm('what a hostile iterable throws is the reason, and nothing is requested', async (take, form) => {
  const reason = new Error('on purpose')
  const fail = () => { throw reason }
  const lists = [
    { [Symbol.iterator]: fail },
    { get [Symbol.iterator] () { return fail() } },
    { [Symbol.iterator]: () => ({ next: fail }) },
    ['a', converted('x', fail)],
    new Proxy([], { get: fail })
  ]
  for (const names of lists) {
    assert.strictEqual(await rejection(locks[form](names, {}, never)), reason)
    assert.strictEqual(nameCount(), 0)
  }
  const revoked = Proxy.revocable([], {})
  revoked.revoke()
  assert.ok(await rejection(locks[form](revoked.proxy, {}, never)) instanceof TypeError)
  // One that requests within.
  const { lock, end } = await take((function * () {
    const token = locks.tryHold('a')
    yield 'a'
    token.unlock()
  })())
  assert.deepStrictEqual(lock.names, ['a'])
  end()
})

testLocks('the members of LockManager.prototype are as WebIDL has them', () => {
  for (const [form, length] of [['requestAll', 2], ['requestAllSync', 2], ['holdAll', 1], ['holdAllAsync', 1]]) {
    const { enumerable, configurable, writable, value } = Object.getOwnPropertyDescriptor(LockManager.prototype, form)
    assert.deepStrictEqual([enumerable, configurable, writable, value.name, value.length],
      [true, true, true, form, length])
  }
})

// ——— waiting ———

forEachForm('one name is held while the next is awaited, in the order of the names', async take => {
  const others = ['b', 'd'].map(name => locks.tryHold(name))
  const waiting = take(['d', 'c', 'b', 'a'])
  await untilPending('b')
  assert.deepStrictEqual(await held(), ['b', 'd', 'a'])
  others[0].unlock()
  await untilPending('d')
  assert.deepStrictEqual(await held(), ['d', 'a', 'b', 'c'])
  others[1].unlock()
  const { lock, end } = await waiting
  assert.deepStrictEqual([lock.names, await held()], [['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd']])
  end()
})

forEachForm('a timeout: an error that tells of the name that was awaited, and all are given back', async take => {
  const other = locks.tryHold('b')
  for (const timeout of [-1, 0, 5]) {
    const error = await rejection(take(['a', 'b', 'c'], { timeout }))
    assert.deepStrictEqual([error.name, error.code, error.kind, error.holder],
      ['TimeoutError', 'ERR_TIMEOUT', 'named', 0])
    assert.strictEqual(error.message,
      `Timed out after ${Math.max(timeout, 0)} ms waiting for the lock named "b", held by thread 0`)
    assert.ok(api.isTimeoutError(error))
    assert.deepStrictEqual([await held(), await pending()], [['b'], []])
  }
  other.unlock()
  const { end } = await take(['a', 'b', 'c'], { timeout: 0 })
  end()
})

forEachForm('there is one deadline for all of them', take => onAQuietMachine(async () => {
  const others = ['a', 'b'].map(name => locks.tryHold(name))
  const start = now()
  const waiting = rejection(take(['a', 'b'], { timeout: 300 }))
  await sleep(200)
  others[0].unlock()
  const { message } = await waiting
  const passed = now() - start
  others[1].unlock()
  assert.strictEqual(message, 'Timed out after 300 ms waiting for the lock named "b", held by thread 0')
  assert.ok(passed >= 300 && passed < 450, `${passed} ms`)
}))

forEachForm('an abort ends the wait for any of them by its reason; after the grant nothing happens', async take => {
  const reason = new Error('the reason')
  const aborted = new TinyController({ reason })
  aborted.abort()
  assert.strictEqual(await rejection(take(['a'], { signal: aborted.signal })), reason)
  const others = ['b', 'c'].map(name => locks.tryHold(name))
  for (const given of [reason, undefined]) {
    const controller = new TinyController({ reason: given })
    const waiting = take(['a', 'b'], { signal: controller.signal })
    await untilPending('b')
    controller.abort()
    const error = await rejection(waiting)
    if (given === undefined) assert.strictEqual(error.name, 'AbortError')
    else assert.strictEqual(error, reason)
    assert.deepStrictEqual([await held(), await pending()], [['b', 'c'], []])
  }
  // Between two of them.
  const between = new TinyController({ reason })
  const waiting = take(['a', 'b', 'c'], { signal: between.signal })
  await untilPending('b')
  others[0].unlock()
  between.abort()
  assert.strictEqual(await rejection(waiting), reason)
  assert.deepStrictEqual([await held(), between.listeners.size], [['c'], 0])
  const late = new TinyController({ reason })
  const granted = take(['a', 'c'], { signal: late.signal })
  others[1].unlock()
  const { lock, end } = await granted
  late.abort()
  assert.deepStrictEqual([late.listeners.size, lock.stolen, await held()], [0, false, ['a', 'c']])
  end()
})

testLocks('within the callback of one of the names: not available; of others, in any depth: granted', async () => {
  const found = await locks.request('b', () => locks.requestAll(['a', 'b'], { ifAvailable: true }, lock => lock))
  assert.strictEqual(found, null)
  const names = await locks.requestAll(['b', 'c'], () => locks.requestAll(['a', 'd'], () => (
    locks.request('e', held))))
  assert.deepStrictEqual(names, ['b', 'c', 'a', 'd', 'e'])
})

testLocks('requests of overlapping lists never wait for one another', async () => {
  const lists = [['a', 'b'], ['b', 'a', 'c'], ['c', 'a'], ['c', 'b']]
  let inside = 0
  const turns = Array.from({ length: 200 }, (_, n) => locks.requestAll(lists[n % 4], async lock => {
    const others = lists.filter(list => lists[n % 4].some(name => list.includes(name)))
    assert.ok(others.length > 0 && inside++ === 0)
    await undefined
    inside--
  }))
  await Promise.all(turns)
})

testLocks('ref and unref: of the promise, whichever name it waits for', async () => {
  const other = locks.tryHold('b')
  const promise = locks.requestAll(['a', 'b'], () => 'done')
  await untilPending('b')
  assert.deepStrictEqual([api.unref(promise), api.ref(promise)], [true, true])
  other.unlock()
  assert.strictEqual(await promise, 'done')
  assert.strictEqual(api.ref(promise), false)
})

// ——— stealing ———

forEachForm('one is stolen while the next is awaited: an AbortError with its name, and all go back', async take => {
  const other = locks.tryHold('c')
  const waiting = take(['a', 'b', 'c'])
  await untilPending('c')
  const thief = await steal('a', ({ tookOver, ownerDied }) => [tookOver, ownerDied])
  const error = await rejection(waiting)
  assert.deepStrictEqual([error.name, error.message],
    ['AbortError', 'The lock named "a" was stolen by another request'])
  assert.deepStrictEqual([thief, await held(), await pending()], [[true, false], ['c'], []])
  other.unlock()
  assert.deepStrictEqual([await toldOf('b'), await toldOf('c')], [false, false])
})

testLocks('one is stolen while the callback runs: it rejects at once, and the others are given back', async () => {
  for (const mode of ['exclusive', 'shared']) {
    let lock
    let end
    const robbed = locks.requestAll(['a', 'b', 'c'], { mode }, given => new Promise(resolve => {
      lock = given
      end = resolve
    }))
    await until(() => lock !== undefined)
    const { signal } = lock
    const waiting = locks.request('c', ({ ownerDied }) => ownerDied)
    await steal('b')
    const { name, message } = await rejection(robbed)
    assert.deepStrictEqual([name, message], ['AbortError', 'The lock named "b" was stolen by another request'])
    assert.deepStrictEqual([lock.stolen, lock.abandon()], [true, false])
    if (HAS_SIGNALS) assert.strictEqual(signal.aborted, true)
    // The callback may be in the midst of a change. Readers change nothing.
    const died = mode === 'exclusive'
    assert.deepStrictEqual([await waiting, await toldOf('a'), await toldOf('b')], [died, died, false])
    end('too late')
    assert.deepStrictEqual(await held(), [])
  }
})

testLocks('the token of several of which one is stolen: nothing is held by it any more', async () => {
  const robbed = await locks.holdAllAsync(['a', 'b'])
  const { signal } = robbed
  const thief = await locks.holdAsync('b', { steal: true })
  // This thread asks before it hears of it.
  assert.deepStrictEqual([robbed.stolen, robbed.locked, robbed.unlock(), robbed.abandon()], [true, false, false, false])
  assert.deepStrictEqual(await held(), ['b'])
  if (HAS_SIGNALS) {
    assert.deepStrictEqual([signal.aborted, robbed.signal === signal], [true, true])
    if (signal.reason !== undefined) assert.strictEqual(signal.reason.name, 'AbortError')
  }
  assert.deepStrictEqual([thief.unlock(), await toldOf('a')], [true, true])
  // It ends orderly before it hears of it.
  const again = await locks.holdAllAsync(['a', 'b'])
  await steal('a')
  assert.deepStrictEqual([again.unlock(), again.stolen, await toldOf('b')], [false, true, false])
})

// ——— deaths and repairs ———

testLocks('ownerDied if one of them says so; an error leaves that with it, a success does not', async () => {
  const die = async (name) => (await locks.holdAsync(name)).abandon()
  await die('b')
  const fail = ({ ownerDied }) => { throw new Error(ownerDied) }
  assert.strictEqual((await rejection(locks.requestAll(['a', 'b'], fail))).message, 'true')
  assert.deepStrictEqual([await toldOf('a'), await locks.requestAll(['a', 'b'], lock => lock.ownerDied)], [false, true])
  assert.strictEqual(await locks.requestAll(['a', 'b'], lock => lock.ownerDied), false)
  await die('a')
  const token = await locks.holdAllAsync(['a', 'b'])
  assert.deepStrictEqual([token.ownerDied, token.unlock(), await toldOf('a')], [true, true, false])
  await locks.requestAll(['a', 'b'], lock => assert.deepStrictEqual([lock.abandon(), lock.ownerDied], [true, false]))
  assert.deepStrictEqual([await toldOf('a'), await toldOf('b'), await toldOf('a')], [true, true, false])
})

for (const mode of ['exclusive', 'shared']) {
  testLocks(`repair (${mode}): once, with all of them held exclusively; then nobody else learns of it`, async () => {
    for (const died of [['a'], ['b', 'c']]) {
      for (const name of died) locks.tryHold(name).abandon()
      const calls = []
      const repair = async lock => {
        await undefined
        const { held } = await locks.query()
        calls.push(lock.names, lock.ownerDied, held.map(({ name, mode }) => name + ' ' + mode))
      }
      const told = await locks.requestAll(['c', 'b', 'a'], { mode, repair }, lock => [lock.ownerDied, lock.mode])
      assert.deepStrictEqual(told, [false, mode])
      const all = ['a exclusive', 'b exclusive', 'c exclusive']
      assert.deepStrictEqual(calls, [['a', 'b', 'c'], true, all])
      for (const name of ['a', 'b', 'c']) assert.strictEqual(await toldOf(name), false)
    }
  })
}

testLocks('after a repair, nobody learns of the death: neither a thief nor the next holder', async () => {
  for (const name of ['b', 'c']) locks.tryHold(name).abandon()
  let end
  const robbed = locks.requestAll(['a', 'b', 'c'], { repair () {} }, () => new Promise(resolve => { end = resolve }))
  await until(() => end !== undefined)
  assert.strictEqual(await steal('c', ({ ownerDied }) => ownerDied), false)
  assert.strictEqual((await rejection(robbed)).name, 'AbortError')
  // The theft is another reason.
  assert.deepStrictEqual([await toldOf('a'), await toldOf('b'), await toldOf('c')], [true, true, false])
})

testLocks('a repair that fails, or a callback that fails beside one: the next holders see a death', async () => {
  const names = ['a', 'b']
  const fail = () => { throw new Error('on purpose') }
  locks.tryHold('a').abandon()
  for (const repair of [fail, async () => fail(), lock => lock.abandon()]) {
    const { message } = await rejection(locks.requestAll(names, { repair }, never))
    assert.ok(message === 'on purpose' || message === 'requestAll: repair has abandoned the lock', message)
    assert.deepStrictEqual(await held(), [])
  }
  let repairs = 0
  await locks.requestAll(names, { repair: () => { repairs++ } }, () => {})
  await rejection(locks.requestAll(names, { repair: never }, fail))
  assert.deepStrictEqual([repairs, await toldOf('a'), await toldOf('b')], [1, true, true])
})
