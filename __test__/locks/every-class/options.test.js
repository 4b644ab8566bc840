'use strict'
// oldest: force (there AbortController, FinalizationRegistry and class fields are missing)

// Options of all classes: an unknown option, or a wrong value of one, is an error that names it, and no wait begins.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { FORMS, NAMES, allocate, bytesOf, optionsOf, thingsIn } = require('../../fixtures/every-class')
const { startMember } = require('../../fixtures/family-toolbox')
const { rejection } = require('../../fixtures/lock-toolbox')

const { AsyncLock, Condition, Semaphore } = api
const memory = () => new SharedArrayBuffer(16)

/** All forms that wait: `call(options)` on main, or where it blocks, `inThread(member, options)`. */
const ALL = FORMS.map(({ name, form, blocks, run, label }) => {
  const sab = allocate()
  return {
    label,
    form,
    blocks,
    call: async options => run(thingsIn(sab, name), options),
    inThread: (member, options) => member.do('form', name, form, options)
  }
})
// It gives null when its time is over.
ALL.push({
  label: 'AsyncLock lockIfAvailable',
  form: 'lockIfAvailable',
  blocks: true,
  inThread: (member, options) => member.on('AsyncLock')('lockIfAvailable', options)
})

/** Returns options that are wrong for every form, with their messages. */
const wrong = (known) => [
  [{ timeOut: 10 }, `options may have ${known}, not "timeOut"`],
  [{ timeout: 10, ms: 5 }, `options may have ${known}, not "ms"`],
  [{ byteOffset: 4 }, `options may have ${known}, not "byteOffset"`],
  [{ timeout: NaN }, 'timeout must be a number of milliseconds, not the number NaN'],
  [{ timeout: '5' }, 'timeout must be a number of milliseconds, not the string "5"'],
  [{ timeout: null }, 'timeout must be a number of milliseconds, not null'],
  [{ timeout: true }, 'timeout must be a number of milliseconds, not true'],
  [{ timeout: {} }, 'timeout must be a number of milliseconds, not an object'],
  [[10], `options may have ${known}, not "0"`]
]

test('forms that await: an unknown option, and a timeout that is no number, are a TypeError that says so', async () => {
  for (const { label, form, blocks, call } of ALL) {
    if (blocks) continue
    const known = /execute/.test(form) ? 'timeout, signal and repair' : 'timeout and signal'
    for (const [options, message] of wrong(known)) {
      const error = await rejection(call(options))
      assert.ok(error instanceof TypeError, `${label}: ${error}`)
      assert.strictEqual(error.message, `${form}: ${message}`, label)
    }
  }
})

test('an unknown option of a form that blocks, and signal too, is refused by name', async t => {
  const member = await startMember(t, allocate())
  for (const { label, form, blocks, inThread } of ALL) {
    if (!blocks) continue
    for (const [options, message] of wrong(/execute/.test(form) ? 'timeout and repair' : 'timeout')) {
      const error = await rejection(inThread(member, options))
      assert.strictEqual(error.name, 'TypeError', label)
      assert.strictEqual(error.message, `${form}: ${message}`, label)
    }
    const error = await rejection(inThread(member, { signal: {} }))
    assert.strictEqual(error.message, `${form} blocks and takes no signal: use the asynchronous form`, label)
  }
})

test('lockIfAvailable takes a number or { timeout }; anything else is a TypeError, at once', async t => {
  const sab = memory()
  const lock = new AsyncLock(sab)
  const member = await startMember(t, sab)
  const token = lock.tryLock()
  for (const given of [undefined, 0, -1, 20, {}, { timeout: undefined }, { timeout: 0 }, { timeout: 20 }]) {
    assert.strictEqual(await member.on('AsyncLock')('lockIfAvailable', given), null)
  }
  for (const [given, what] of [[null, 'null'], ['50', 'the string "50"'], [NaN, 'the number NaN'], [true, 'true']]) {
    const error = await rejection(member.on('AsyncLock')('lockIfAvailable', given))
    assert.strictEqual(error.name, 'TypeError')
    assert.strictEqual(error.message, `lockIfAvailable: timeout must be a number of milliseconds, not ${what}`)
    assert.throws(() => lock.lockIfAvailable(given), TypeError)
  }
  assert.throws(() => lock.lockIfAvailable(() => 50), TypeError)
  token.unlock()
})

test('an option may be inherited, but not from Object.prototype', async () => {
  const lock = new AsyncLock(memory())
  const token = lock.tryLock()
  for (const options of [Object.create({ timeout: 3 }), new (class { get timeout () { return 3 } })()]) {
    assert.strictEqual((await rejection(lock.lockAsync(options))).name, 'TimeoutError')
  }
  const all = Object.prototype
  Object.defineProperty(all, 'timeout', { value: 0, writable: true, configurable: true })
  try {
    const pending = [lock.lockAsync(), lock.lockAsync({}), lock.lockAsync({ signal: undefined })]
    token.unlock()
    for (const each of pending) (await each).unlock()
  } finally {
    delete all.timeout
  }
})

test('constructors: an unknown option is a TypeError that lists the known ones', () => {
  const lists = {
    AsyncLock: 'repair, detectReentry, byteOffset and name',
    Barrier: 'parties, byteOffset and name',
    Condition: 'byteOffset and name',
    Latch: 'count, byteOffset and name',
    Queue: 'capacity, messageSize, format, byteOffset and name',
    RwLock: 'repair, detectReentry, byteOffset and name',
    Semaphore: 'permits, detectReentry, byteOffset and name'
  }
  assert.deepStrictEqual(Object.keys(lists).sort(), NAMES.slice().sort())
  for (const name of NAMES) {
    const options = optionsOf(name)
    const memory = () => new SharedArrayBuffer(bytesOf(name))
    for (const key of ['offset', 'byteoffset', 'timeout', '']) {
      const message = `${name}: options may have ${lists[name]}, not ${JSON.stringify(key)}`
      assert.throws(() => new api[name](memory(), Object.assign({ [key]: 4 }, options)), { name: 'TypeError', message })
    }
    assert.throws(() => new api[name](memory(), null), new RegExp(`${name}: options must be an object, not null$`))
    // A property that is not enumerable, or whose key is no string, is no option.
    const marked = Object.defineProperty(Object.assign({ [Symbol('s')]: 1 }, options), 'hidden', { value: 1 })
    assert.ok(new api[name](memory(), marked))
  }
})

test('constructors: an option that a class does not have is not read, also if it is inherited', () => {
  const having = { AsyncLock: ['repair', 'detectReentry'], RwLock: ['repair', 'detectReentry'] }
  having.Semaphore = ['detectReentry']
  for (const name of NAMES) {
    const read = []
    const noting = (key) => ({ get: () => void read.push(key) })
    const inherited = Object.create(null, { repair: noting('repair'), detectReentry: noting('detectReentry') })
    const options = Object.assign(Object.create(inherited), optionsOf(name))
    assert.ok(new api[name](new SharedArrayBuffer(bytesOf(name)), options))
    assert.deepStrictEqual(read, having[name] || [], name)
  }
})

test('constructors: a number that is wrong names no word', () => {
  for (const [name, wrong] of [['Barrier', { parties: 0 }], ['Latch', { count: -1 }], ['Semaphore', { permits: 0 }]]) {
    const sab = memory()
    assert.throws(() => new api[name](sab, Object.assign({ name: 'wrong' }, wrong)), RangeError)
    assert.strictEqual(new AsyncLock(sab).name, '', name)
  }
})

test('options in the place of a count: the error says how to write them', async () => {
  const semaphore = new Semaphore(memory())
  semaphore.release(1)
  const refused = async (promise, what, instead) => {
    const message = `${instead.split('(')[0]}: n must be an integer, not ${what}; for one permit write ${instead}`
    await assert.rejects(promise, { name: 'TypeError', message })
  }
  await refused(semaphore.acquireAsync({ timeout: 5 }), 'an object', 'acquireAsync(1, options)')
  await refused(semaphore.use(() => {}), 'a function', 'use(1, callback)')
  assert.throws(() => semaphore.tryAcquire({}), /^TypeError: tryAcquire: n must be an integer, not an object$/)
  assert.strictEqual(semaphore.available, 1)
  assert.throws(() => new Condition(memory()).notify({}), TypeError)
})

test('a claim with a timeout of 0 never joins the line', async () => {
  const lock = new AsyncLock()
  const token = lock.tryLock()
  const options = { timeout: 0 }
  for (const begin of [() => lock.lockAsync(options), () => lock.executeLocked(() => {}, options)]) {
    const late = rejection(begin())
    assert.strictEqual(lock.waiters, 0)
    assert.strictEqual((await late).code, 'ERR_TIMEOUT')
  }
  token.unlock()
})
