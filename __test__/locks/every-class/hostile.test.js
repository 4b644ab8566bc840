'use strict'

// Code of the same thread: it patches built-ins and forges receivers and tokens. It runs within a call. It can neither
// see nor choose an address, it reaches no byte outside of the given ones, and it cannot release the locks of other
// threads. Programs that might crash run in a process of their own.

const assert = require('assert')
const { createHook } = require('async_hooks')
const path = require('path')
const util = require('util')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { NAMES, NODE_NEEDS, NODE_STANDS } = require('../../fixtures/hostile-world')
const { MAJOR, startWorker } = require('../../fixtures/queue-toolbox')
const { runForJSON } = require('../../fixtures/run-node')
const size = require('../../fixtures/size')

const HIDES_PROMISES = (MAJOR === 12 || MAJOR === 13) && 'the hooks of this Node show no promises'

// ——— built-ins that were polluted or replaced after the package was loaded ———

for (const [place, name] of NAMES.entries()) {
  const breaksNode = MAJOR < NODE_STANDS && NODE_NEEDS.includes(name)
  const breaksAwait = MAJOR < 12 && name === 'Promise.prototype'
  const skip = (breaksNode && 'Node itself fails without it here') || (breaksAwait && 'await calls its then here')
  const threads = ['main', 'a worker'].filter((_, n) => size.has(2, n + place))
  test(`${name}: changes nothing, on ${threads.join(' and on ')}`, { skip, timeout: 60000 }, async t => {
    const world = require.resolve('../../fixtures/hostile-world.js')
    const differences = await runForJSON(t, [world, name, ...threads], { env: { SUBJECT: 'force' } })
    assert.deepStrictEqual(differences, threads.map(() => []))
  })
}

// ——— programs that attack ———

/** Runs a program that calls `say` with what is to be compared. It begins with only the entry loaded. */
function attack (t, source, entry = 'force') {
  const program = `
    const api = require(${JSON.stringify(path.join(__dirname, '..', '..', '..', entry))})
    const say = (value) => { console.log(JSON.stringify(value)) }
    const outcome = async (call) => { try { return await call() } catch (error) { return error.name } }
    ${source}`
  return runForJSON(t, ['-e', program])
}

/** What a program does, by what lies then. */
const LIES = {
  byteOffset: 'define(TypedArray, "byteOffset", { get: () => 2 ** 40 })',
  length: 'ofWords("length", 2 ** 30)',
  buffer: 'ofWords("buffer", new SharedArrayBuffer(64))',
  byteLength: 'define(SharedArrayBuffer.prototype, "byteLength", { get: () => 2 ** 40 })',
  Uint8Array: 'const Bytes = Uint8Array; global.Uint8Array = function () { return new Bytes(64) }',
  Int32Array: 'const Words = Int32Array; global.Int32Array = function () { return new Words(64) }',
  Float64Array: 'global.Float64Array = function () { return [] }',
  ArrayBuffer: 'const Buffer = ArrayBuffer; global.ArrayBuffer = function () { return new Buffer(8) }',
  WeakMap: 'WeakMap.prototype.get = () => Object.assign({ shared: true, wide: false, length: 16, grows: false }, word)',
  address: 'define(Object.prototype, "address", { get: () => 64, set () {} })',
  agent: `
    const holdings = { createWord: () => word }
    const agent = { wait: steal, addressOf: () => 64, waiterCount: steal, holdings }
    define(Object.prototype, "agent", { get: () => agent, set () {} })`
}

const underLies = (lie) => `
  const define = (object, key, property) => {
    Object.defineProperty(object, key, Object.assign({ configurable: true }, property))
  }
  const TypedArray = Object.getPrototypeOf(Int32Array.prototype)
  // Not of Node's own buffers, out of which it writes and into which it reads.
  const ofWords = (key, lie) => {
    const { get } = Object.getOwnPropertyDescriptor(TypedArray, key)
    define(TypedArray, key, { get () { return this instanceof Int32Array ? lie : Reflect.apply(get, this, []) } })
  }
  const sab = new SharedArrayBuffer(64)
  const array = new Int32Array(sab)
  const word = { array, address: 64 }
  const stolen = []
  const steal = (...args) => { stolen.push(...args) }
  // This loads the modules; they have made nothing of the memory below.
  void new api.AsyncLock(new SharedArrayBuffer(4))
  ${lie}
  ;(async () => {
    const lock = await outcome(() => new api.AsyncLock(sab, { byteOffset: 8 }))
    const made = await outcome(() => new api.AsyncLock(sab, { byteOffset: 64 }) && 'made')
    const beyond = [made, await outcome(() => api.wait(array, 16, 0, 1))]
    const token = lock.tryLock()
    const next = lock.lockAsync()
    const counts = [api.waiterCount(array, 2), api.waiterCount(array, 3)]
    token.unlock()
    await next
    const held = []
    for (let n = 0; n < 16; n++) held.push(array[n])
    ;(await outcome(() => lock.unlock()))
    say({ beyond, counts, held: held.join(''), waited: api.wait(array, 4, 0, 1), stolen })
  })()`

for (const [place, entry] of ['index', 'force', 'pure'].entries()) {
  test(`/${entry}: typed arrays are asked through the built-ins of the time before the load`, async t => {
    // There Node reads no file any more, and this entry has not loaded all it needs.
    const isKnown = name => entry !== 'index' || MAJOR >= 20 || name !== 'length'
    const names = Object.keys(LIES).filter((name, n) => isKnown(name) && size.has(3, n + place))
    const held = '0010000000000000'
    const expected = { beyond: ['RangeError', 'RangeError'], counts: [1, 0], held, waited: 'timed-out', stolen: [] }
    // In a process of its own for each, since an address is asked for once.
    await Promise.all(names.map(async name => {
      assert.deepStrictEqual(await attack(t, underLies(LIES[name]), entry), expected, name)
    }))
  })
}

/** Makes one of each class. */
function oneOfEach () {
  const sab = new SharedArrayBuffer(64)
  return {
    sab,
    lock: new api.AsyncLock(sab),
    rw: new api.RwLock(sab, { byteOffset: 8 }),
    semaphore: new api.Semaphore(sab, { byteOffset: 16 }),
    limit: new api.Semaphore(sab, { byteOffset: 48, permits: 2 }),
    condition: new api.Condition(sab, { byteOffset: 24 }),
    barrier: new api.Barrier(sab, { byteOffset: 32, parties: 2 }),
    latch: new api.Latch(sab, { byteOffset: 40, count: 1 }),
    queue: api.Queue.create({ capacity: 2, messageSize: 8 })
  }
}

test('no value that is reached from an instance or a token is an address, and hidden values cannot be changed', () => {
  const { sab, ...things } = oneOfEach()
  const tokens = { token: things.lock.tryLock(), writer: things.rw.tryLock() }
  const seen = new Set([sab])
  const look = (value, way) => {
    if (typeof value === 'number') assert.ok(!(value > 0xffff), `${way}: ${value}`)
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return
    seen.add(value)
    for (const key of Reflect.ownKeys(value)) {
      const { value: inner } = Object.getOwnPropertyDescriptor(value, key)
      look(inner, `${way}.${String(key)}`)
    }
  }
  for (const [name, thing] of Object.entries(Object.assign({}, things, tokens))) {
    look(thing, name)
    look(thing.constructor.prototype, `${name}.prototype`)
  }
  for (const thing of Object.values(things)) {
    for (const key of Object.getOwnPropertySymbols(thing)) {
      const property = Object.getOwnPropertyDescriptor(thing, key)
      assert.deepStrictEqual([property.writable, property.configurable, property.enumerable], [false, false, false])
    }
  }
  tokens.token.unlock()
  tokens.writer.unlock()
})

test('instances have no properties of their own but those that are documented', () => {
  const { sab, ...things } = oneOfEach()
  const keys = {
    lock: ['kind', 'buffer', 'byteOffset', 'sab', 'i32a'],
    barrier: ['kind', 'buffer', 'byteOffset', 'parties'],
    latch: ['kind', 'buffer', 'byteOffset', 'count'],
    queue: ['kind', 'buffer', 'byteOffset', 'capacity', 'messageSize'],
    limit: ['kind', 'buffer', 'byteOffset', 'permits']
  }
  for (const name of Object.keys(things)) {
    assert.deepStrictEqual(Object.keys(things[name]), keys[name] || ['kind', 'buffer', 'byteOffset'], name)
    assert.strictEqual(Object.getOwnPropertyNames(things[name]).length, Object.keys(things[name]).length)
    assert.deepStrictEqual(Object.assign({}, things[name])[Object.getOwnPropertySymbols(things[name])[0]], undefined)
  }
  const token = things.lock.tryLock()
  assert.deepStrictEqual(Object.getOwnPropertyNames(token), ['ownerDied'])
  token.unlock()
})

test('util.inspect of a token tells its class, locked and ownerDied, and nothing else', () => {
  const { lock, rw } = oneOfEach()
  const [token, writer] = [lock.tryLock(), rw.tryLock()]
  assert.strictEqual(util.inspect(token), 'UnlockToken { locked: true, ownerDied: false }')
  assert.strictEqual(util.inspect(writer), 'ExclusiveToken { locked: true, ownerDied: false }')
  const reader = writer.downgrade()
  const shown = util.inspect({ reader, writer }, { breakLength: Infinity })
  const [ofReader, ofWriter] = ['UnlockToken { locked: true,', 'ExclusiveToken { locked: false,']
  assert.strictEqual(shown, `{ reader: ${ofReader} ownerDied: false }, writer: ${ofWriter} ownerDied: false } }`)
  assert.deepStrictEqual([token.unlock(), reader.unlock()], [true, true])
  assert.strictEqual(util.inspect(token), 'UnlockToken { locked: false, ownerDied: false }')
  assert.strictEqual(JSON.stringify(token), '{"ownerDied":false}')
})

/** Calls and waits for what comes; gives the value, or the error. */
const attempt = (call) => (async () => call())().catch(error => error)

const late = { timeout: 1 }
const nothing = () => {}
/** Calls that do not wait for long, by class. */
const CALLS = {
  lock: ['tryLock', 'lockIfAvailable', ['lockAsync', late], ['executeLocked', nothing, late], 'unlock'],
  rw: [
    'tryLock', 'tryLockShared', ['lockAsync', late], ['lockSharedAsync', late], ['executeLocked', nothing, late],
    ['executeShared', nothing, late]
  ],
  semaphore: [
    'release', 'tryAcquire', ['acquireAsync', 1, late], ['use', 1, nothing, late], 'tryHold', ['holdAsync', 1, late]
  ],
  limit: ['tryHold', ['holdAsync', 1, late], ['use', 1, nothing, late]],
  condition: ['notify'],
  barrier: [['waitAsync', late]],
  latch: [['waitAsync', late], 'countDown'],
  queue: ['tryTake', ['tryPut', 1], ['takeAsync', late], ['putAsync', 1, late], ['use', nothing, late], 'close']
}

test('a method that is called on another receiver throws a TypeError, or works on the instance behind it', async () => {
  const { sab, ...things } = oneOfEach()
  const around = new Int32Array(sab)
  for (const name of Object.keys(things)) {
    const thing = things[name]
    const prototype = Object.getPrototypeOf(thing)
    const other = oneOfEach()[name]
    const [hidden] = Object.getOwnPropertySymbols(thing)
    const forged = (show) => Object.assign(Object.create(prototype), thing, { [hidden]: show })
    const passedOn = () => {
      other[hidden]()
      throw new TypeError('mine')
    }
    const shows = [
      undefined, { address: 64 }, () => ({ address: 64, array: around }), passedOn,
      () => { attempt(() => other[CALLS[name][0]]) }, class {}
    ]
    const foreign = [undefined, null, 1, 'x', {}, prototype, ...shows.map(forged)]
    const real = [Object.create(thing), new Proxy(thing, {}), forged(thing[hidden])]
    const getters = Object.getOwnPropertyNames(prototype).filter(
      key => Object.getOwnPropertyDescriptor(prototype, key).get
    )
    for (const call of CALLS[name].concat(getters)) {
      const [method, ...args] = [].concat(call)
      const { value, get } = Object.getOwnPropertyDescriptor(prototype, method)
      for (const receiver of foreign) {
        const result = await attempt(() => Reflect.apply(value || get, receiver, args))
        assert.ok(result instanceof TypeError, `${name}.${method} on ${typeof receiver}: ${String(result)}`)
        assert.ok(around.every(word => word === 0))
      }
      for (const receiver of real) {
        const token = await attempt(() => Reflect.apply(value || get, receiver, args))
        if (token && token.unlock) await attempt(() => token.unlock())
        assert.ok(around.every((word, n) => word === 0 || (n % 2 === 0 && n < 12)))
        around.fill(0)
      }
    }
  }
})

test('a token with strange properties stands for a lock that this thread holds, or for nothing', async () => {
  const sab = new SharedArrayBuffer(64)
  const words = new Int32Array(sab)
  const locks = Array.from({ length: 4 }, (_, n) => new api.AsyncLock(sab, { byteOffset: 8 * n }))
  const condition = new api.Condition(sab, { byteOffset: 60 })
  const example = locks[0].tryLock()
  const [position, serial] = Object.getOwnPropertySymbols(example)
  example.unlock()
  let calls = 0
  const fail = () => { throw new RangeError('mine') }
  const numbers = [
    -1, 0, 1, 2, 3, 15, 16, 17, 0.5, 0x40000000, 0x80000000, 0x100000000, -0x80000000, 0x20000000000000, 1e300
  ]
  const values = [
    undefined, null, true, NaN, Infinity, '0', '1', 'length', 'buffer', 'x', Symbol('s'), {}, [], [1], fail
  ]
  const objects = [{ valueOf: () => calls++ % 3 }, { valueOf: fail }]
  const strange = (latest) => [...numbers, latest, latest - 1, latest + 1, ...values, ...objects]
  const lockedCount = () => locks.filter(lock => lock.locked).length
  for (let round = 0; round < strange(0).length; round++) {
    const held = locks.map(lock => lock.tryLock())
    const first = strange(held[3][serial])[round]
    for (const second of strange(held[3][serial])) {
      const token = Object.assign(new api.UnlockToken(), { [position]: first, [serial]: second })
      const live = await attempt(() => token.locked)
      await attempt(() => condition.waitAsync(token, { timeout: 0 }))
      await attempt(() => token[util.inspect.custom](0, {}))
      const before = lockedCount()
      const given = await attempt(() => token.unlock())
      const what = `${String(first)} ${String(second)} ${String(live)}`
      assert.strictEqual(lockedCount(), before - (given === true ? 1 : 0), what)
      if (given !== true) assert.ok(given === false || given instanceof Error)
      const isRight = (word, n) => word === 0 || (word === 1 && n % 2 === 0 && n < 8)
      assert.ok(words.every(isRight), words.join())
    }
    for (const token of held) token.unlock()
    assert.strictEqual(lockedCount(), 0)
  }
})

test('new UnlockToken() stands for nothing, with whichever arguments', () => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const [position, serial] = Object.getOwnPropertySymbols(token)
  for (const args of [
    [], [token[position], token[serial]], [token], [lock, 0, token[position], token[serial], false]
  ]) {
    const forged = new api.UnlockToken(...args)
    assert.strictEqual(forged.locked, false)
    assert.strictEqual(forged.unlock(), false)
    assert.strictEqual(forged.abandon(), false)
  }
  assert.strictEqual(token.unlock(), true)
})

for (const name of ['AsyncLock', 'RwLock']) {
  test(`${name}: a token that is frozen, or behind a proxy, is as good as any`, async () => {
    const sab = new SharedArrayBuffer(16)
    const lock = new api[name](sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    const others = Array.from({ length: 3 }, () => new api.AsyncLock(new SharedArrayBuffer(4)))
    const set = () => { throw new Error('a trap was called') }
    for (const wrap of [Object.freeze, token => new Proxy(token, {}), token => new Proxy(token, { set })]) {
      const before = others[0].tryLock()
      const token = wrap(lock.tryLock())
      const behind = others[1].tryLock()
      for (let n = 0; n < 100; n++) {
        const result = condition.waitAsync(token)
        assert.strictEqual(token.locked, false)
        assert.strictEqual(lock.locked, false)
        // The place that it had goes to another.
        const between = others[2].tryLock()
        condition.notify()
        assert.strictEqual(await result, true)
        assert.strictEqual(token.locked, true)
        assert.strictEqual(lock.tryLock(), null)
        between.unlock()
      }
      assert.strictEqual(token.unlock(), true)
      assert.strictEqual(token.unlock(), false)
      assert.strictEqual(lock.locked, false)
      assert.deepStrictEqual([before.unlock(), behind.unlock()], [true, true])
    }
  })
}

test('code that runs within a wait and unlocks: an error, and the robust list is right', async () => {
  const sab = new SharedArrayBuffer(16)
  const lock = new api.AsyncLock(sab)
  const other = new api.AsyncLock(sab, { byteOffset: 4 })
  const condition = new api.Condition(sab, { byteOffset: 8 })
  /** Makes a function that unlocks at its nth call. */
  const unlocks = (token, value, nth = 1) => () => {
    if (--nth === 0) token.unlock()
    return value
  }
  /** Makes an object whose property unlocks when it is read. */
  const trap = (object, key, ...how) => Object.defineProperty(object, key, { get: unlocks(...how), enumerable: true })
  const wait = (token, options) => condition.waitAsync(token, options)
  const waitFor = (token, value, options) => condition.waitForAsync(token, unlocks(token, value), options)
  const listens = (addEventListener = () => {}) => ({ aborted: false, addEventListener })
  const attempts = [
    token => wait(token, trap({}, 'timeout', token, 5)),
    token => wait(token, trap({}, 'signal', token)),
    token => wait(token, { signal: trap(listens(), 'aborted', token, false) }),
    token => waitFor(token, false),
    token => waitFor(token, false, { timeout: 1 }),
    token => waitFor(token, true),
    // While the signal is joined.
    token => wait(token, { signal: trap(listens(), 'aborted', token, false, 2) }),
    token => wait(token, { signal: listens(unlocks(token)) }),
    token => wait(trap(token, 'ownerDied', token, true))
  ]
  for (const run of attempts) {
    const [token, kept] = [lock.tryLock(), other.tryLock()]
    const error = await attempt(() => run(token))
    assert.strictEqual(error.code, 'ERR_NOT_LOCKED', String(error))
    assert.deepStrictEqual([lock.locked, other.locked, kept.locked], [false, true, true])
    assert.strictEqual(kept.unlock(), true)
    assert.strictEqual(condition.waiters, 0)
  }
})

test('a getter of a token that unlocks it reaches no other entry of the robust list', async t => {
  const thread = startWorker(t, null, ({ api }) => {
    const [lock, condition] = [new api.RwLock(), new api.Condition()]
    const others = [new api.AsyncLock(), new api.AsyncLock()]
    const codes = []
    for (const use of [token => condition.wait(token, { timeout: 1 }), token => token.downgrade()]) {
      const before = others[0].lock()
      const token = lock.lock()
      const behind = others[1].lock()
      Object.defineProperty(token, 'ownerDied', { get: () => token.unlock() })
      try {
        use(token)
      } catch (error) {
        codes.push(error.code)
      }
      if (api.snapshot().held.length !== 2) throw new Error(JSON.stringify(api.snapshot().held))
      if (!before.unlock() || !behind.unlock()) throw new Error('a token is dead')
    }
    return codes
  })
  assert.deepStrictEqual(await thread.done(), ['ERR_NOT_LOCKED', 'ERR_NOT_LOCKED'])
})

test('inherited properties are no hooks of a wait', async () => {
  const { sab, latch, barrier } = oneOfEach()
  const word = new Int32Array(sab, 60)
  const signal = { aborted: false, addEventListener () {}, removeEventListener () {} }
  const called = []
  const keys = ['onEnqueuing', 'onEnqueued', 'onNotified']
  const { prototype } = Object
  for (const key of keys) {
    const get = () => function () { called.push(key, this) }
    Object.defineProperty(prototype, key, { configurable: true, get, set () {} })
  }
  const waits = [latch.waitAsync(), barrier.waitAsync(), api.waitAsync(word, 0, 0, undefined, { signal }).value]
  for (const key of keys) delete prototype[key]
  assert.deepStrictEqual(called, [])
  latch.countDown()
  waits.push(barrier.waitAsync())
  api.notify(word, 0)
  await Promise.all(waits)
})

test('no promise that hooks see has what a request for a name is granted', { skip: HIDES_PROMISES }, async () => {
  const promises = []
  let release
  const first = api.locks.request('a name', () => new Promise(resolve => { release = resolve }))
  await undefined
  await undefined
  const init = (id, type, trigger, resource) => type === 'PROMISE' && promises.push(resource.promise || resource)
  const hook = createHook({ init }).enable()
  const second = api.locks.request('a name', () => 'granted')
  hook.disable()
  assert.ok(promises.length > 2, `${promises.length} promises`)
  release()
  assert.strictEqual(await second, 'granted')
  await first
  for (const value of await Promise.all(promises))
    assert.ok([undefined, 'granted'].includes(value), util.inspect(value))
})

test('a signal whose code begins another call, or that calls the listener and throws', async () => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  let other
  const nest = () => { other = lock.executeLocked(() => {}) }
  const nesting = { aborted: false, addEventListener: nest, removeEventListener () {} }
  const promise = lock.executeLocked(() => {}, { signal: nesting })
  assert.deepStrictEqual([api.unref(promise), api.unref(other)], [true, true])
  api.ref(promise)
  const call = (_, listener) => {
    listener()
    throw new Error('of a signal')
  }
  const calling = { aborted: false, reason: 'aborted', addEventListener: call }
  const word = new Int32Array(new SharedArrayBuffer(4))
  const options = { signal: calling }
  const begins = [() => lock.lockAsync(options), () => lock.executeLocked(() => {}, options)]
  for (const begin of [...begins, () => api.waitAsync(word, 0, 0, undefined, options).value]) {
    // A rejection that nobody has handled would end the program.
    assert.strictEqual(await begin().catch(reason => reason), 'aborted')
  }
  assert.strictEqual(api.waiterCount(word, 0), 0)
  token.unlock()
  await Promise.all([promise, other])
})

test('methods of ours that were replaced are not asked by the package', async () => {
  const sab = new SharedArrayBuffer(16)
  const lock = new api.AsyncLock(sab)
  const condition = new api.Condition(sab, { byteOffset: 8 })
  const token = lock.tryLock()
  const fail = () => { throw new Error('it was read') }
  for (const key of ['locked', 'unlock']) Object.defineProperty(token, key, { get: fail })
  const result = condition.waitAsync(token)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(condition.notify(), 1)
  assert.strictEqual(await result, true)
  assert.strictEqual(lock.locked, true)
  lock.unlock()
})
