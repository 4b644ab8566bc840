'use strict'

// Code in the same thread that patches built-ins, forges receivers and tokens, and runs within a call. It can neither see nor choose an
// address, it reaches no byte outside of the given ones, and it cannot release the locks of other threads. Programs that might crash run in
// a process of their own.

const assert = require('assert')
const { createHook } = require('async_hooks')
const path = require('path')
const util = require('util')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { NAMES, NODE_NEEDS, NODE_STANDS } = require('../../fixtures/hostile-world')
const { MAJOR, startWorker } = require('../../fixtures/queue-toolbox')
const { runForJSON } = require('../../fixtures/run-node')

const HIDES_PROMISES = (MAJOR === 12 || MAJOR === 13) && 'the hooks of this Node show no promises'

// ——— built-ins that were polluted or replaced after the package was loaded ———

for (const name of NAMES) {
  const skip = (MAJOR < NODE_STANDS && NODE_NEEDS.includes(name) && 'Node itself fails without it here') ||
    (MAJOR < 12 && name === 'Promise.prototype' && 'await itself calls Promise.prototype.then here')
  test(`${name}: changes nothing for any class, on main and in a worker that blocks`, { skip, timeout: 60000 }, async t => {
    const world = require.resolve('../../fixtures/hostile-world.js')
    for (const thread of ['main', 'worker']) {
      assert.deepStrictEqual(await runForJSON(t, [world, name, thread], { env: { SUBJECT: 'force' } }), [], thread)
    }
  })
}

// ——— programs that attack ———

/** Runs a program that calls `say` with what is to be compared. It begins with only the entry loaded. */
function attack (t, source, entry = 'force') {
  return runForJSON(t, ['-e', `
    const api = require(${JSON.stringify(path.join(__dirname, '..', '..', '..', entry))})
    const say = (value) => { console.log(JSON.stringify(value)) }
    const outcome = async (call) => { try { return await call() } catch (error) { return error.name } }
    ${source}`])
}

for (const entry of ['index', 'force', 'pure']) {
  test(`/${entry}: typed arrays are asked through the built-ins of the time before the load`, async t => {
    // In a process of its own for each, since an address is asked for once.
    const lies = {
      byteOffset: 'define(Object.getPrototypeOf(Int32Array.prototype), "byteOffset", { get: () => 2 ** 40 })',
      // Not of Node's own buffers, out of which it writes and into which it reads.
      length: 'const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Int32Array.prototype), "length"); ' +
        'define(Object.getPrototypeOf(Int32Array.prototype), "length", { get () { return this instanceof Int32Array ? 2 ** 30 : Reflect.apply(get, this, []) } })',
      buffer: 'const other = new SharedArrayBuffer(64); const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Int32Array.prototype), "buffer"); ' +
        'define(Object.getPrototypeOf(Int32Array.prototype), "buffer", { get () { return this instanceof Int32Array ? other : Reflect.apply(get, this, []) } })',
      byteLength: 'define(SharedArrayBuffer.prototype, "byteLength", { get: () => 2 ** 40 })',
      Uint8Array: 'const Bytes = Uint8Array; global.Uint8Array = function () { return new Bytes(64) }',
      Int32Array: 'const Words = Int32Array; global.Int32Array = function () { return new Words(64) }',
      Float64Array: 'global.Float64Array = function () { return [] }',
      ArrayBuffer: 'const Buffer = ArrayBuffer; global.ArrayBuffer = function () { return new Buffer(8) }',
      WeakMap: 'WeakMap.prototype.get = () => ({ array, shared: true, wide: false, address: 64, length: 16, grows: false })',
      address: 'define(Object.prototype, "address", { get: () => 64, set () {} })',
      agent: 'define(Object.prototype, "agent", { get: () => ({ wait: steal, addressOf: () => 64, waiterCount: steal, get holdings () { return { createWord: () => ({ array, address: 64 }) } } }), set () {} })'
    }
    // There Node reads no file any more, and this entry has not loaded all it needs.
    if (entry === 'index' && MAJOR < 20) delete lies.length
    await Promise.all(Object.keys(lies).map(async name => {
      assert.deepStrictEqual(await attack(t, `
        const define = (object, key, property) => { Object.defineProperty(object, key, Object.assign({ configurable: true }, property)) }
        const sab = new SharedArrayBuffer(64)
        const array = new Int32Array(sab)
        const stolen = []
        const steal = (...args) => { stolen.push(...args) }
        // The modules, but nothing of what they make.
        void api.AsyncLock
        ${lies[name]}
        ;(async () => {
          const lock = await outcome(() => new api.AsyncLock(sab, { byteOffset: 8 }))
          const beyond = [await outcome(() => new api.AsyncLock(sab, { byteOffset: 64 }) && 'made'), await outcome(() => api.wait(array, 16, 0, 1))]
          const token = lock.tryLock()
          const next = lock.lockAsync()
          const counts = [api.waiterCount(array, 2), api.waiterCount(array, 3)]
          token.unlock()
          await next
          const held = []
          for (let n = 0; n < 16; n++) held.push(array[n])
          ;(await outcome(() => lock.unlock()))
          say({ beyond, counts, held, waited: api.wait(array, 4, 0, 1), stolen })
        })()`, entry), {
        beyond: ['RangeError', 'RangeError'], counts: [1, 0], held: [0, 0, 1].concat(new Array(13).fill(0)), waited: 'timed-out', stolen: []
      }, name)
    }))
  })
}

/** One of each class. */
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
  assert.strictEqual(util.inspect({ reader, writer }, { breakLength: Infinity }),
    '{ reader: UnlockToken { locked: true, ownerDied: false }, writer: ExclusiveToken { locked: false, ownerDied: false } }')
  assert.deepStrictEqual([token.unlock(), reader.unlock()], [true, true])
  assert.strictEqual(util.inspect(token), 'UnlockToken { locked: false, ownerDied: false }')
  assert.strictEqual(JSON.stringify(token), '{"ownerDied":false}')
})

/** Calls and waits for what comes; gives the value, or the error. */
async function attempt (call) {
  try {
    return await call()
  } catch (error) {
    return error
  }
}

const late = { timeout: 1 }
/** Calls that do not wait for long, by class. */
const CALLS = {
  lock: ['tryLock', 'lockIfAvailable', ['lockAsync', late], ['executeLocked', () => {}, late], 'unlock'],
  rw: ['tryLock', 'tryLockShared', ['lockAsync', late], ['lockSharedAsync', late], ['executeLocked', () => {}, late], ['executeShared', () => {}, late]],
  semaphore: ['release', 'tryAcquire', ['acquireAsync', 1, late], ['use', 1, () => {}, late], 'tryHold', ['holdAsync', 1, late]],
  limit: ['tryHold', ['holdAsync', 1, late], ['use', 1, () => {}, late]],
  condition: ['notify'],
  barrier: [['waitAsync', late]],
  latch: [['waitAsync', late], 'countDown'],
  queue: ['tryTake', ['tryPut', 1], ['takeAsync', late], ['putAsync', 1, late], ['use', () => {}, late], 'close']
}

test('a method that is called on another receiver throws a TypeError, or works on the instance behind it', async () => {
  const { sab, ...things } = oneOfEach()
  const around = new Int32Array(sab)
  for (const name of Object.keys(things)) {
    const thing = things[name]
    const other = oneOfEach()[name]
    const [hidden] = Object.getOwnPropertySymbols(thing)
    const forged = (show) => Object.assign(Object.create(Object.getPrototypeOf(thing)), thing, { [hidden]: show })
    const foreign = [undefined, null, 1, 'x', {}, Object.getPrototypeOf(thing), forged(undefined), forged({ address: 64 }), forged(() => ({ address: 64, array: around })),
      forged(() => { other[hidden](); throw new TypeError('mine') }), forged(() => { attempt(() => other[CALLS[name][0]]) }), forged(class {})]
    const real = [Object.create(thing), new Proxy(thing, {}), forged(thing[hidden])]
    const methods = CALLS[name].map(call => [].concat(call)).concat(
      Object.getOwnPropertyNames(Object.getPrototypeOf(thing)).filter(key => Object.getOwnPropertyDescriptor(Object.getPrototypeOf(thing), key).get).map(key => [key]))
    for (const [method, ...args] of methods) {
      const { value, get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(thing), method)
      for (const receiver of foreign) {
        const result = await attempt(() => Reflect.apply(value || get, receiver, args))
        assert.ok(result instanceof TypeError, `${name}.${method} on ${typeof receiver}: ${String(result)}`)
        assert.deepStrictEqual(Array.from(around), new Array(16).fill(0))
      }
      for (const receiver of real) {
        await attempt(async () => { const token = await Reflect.apply(value || get, receiver, args); if (token && token.unlock) token.unlock() })
        for (let n = 0; n < 16; n++) if (n % 2 === 1 || n >= 12) assert.strictEqual(around[n], 0)
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
  const strange = (latest) => [undefined, null, true, -1, 0, 1, 2, 3, latest, latest - 1, latest + 1, 15, 16, 17, 0.5, 2 ** 30, 2 ** 31, 2 ** 32, -(2 ** 31), 2 ** 53, 1e300, NaN,
    Infinity, '0', '1', 'length', 'buffer', 'x', Symbol('s'), {}, [], [1], { valueOf: () => calls++ % 3 }, { valueOf () { throw new RangeError('mine') } }, () => {}]
  for (let round = 0; round < strange(0).length; round++) {
    const held = locks.map(lock => lock.tryLock())
    const first = strange(held[3][serial])[round]
    for (const second of strange(held[3][serial])) {
      const token = Object.assign(new api.UnlockToken(), { [position]: first, [serial]: second })
      const live = await attempt(() => token.locked)
      await attempt(() => condition.waitAsync(token, { timeout: 0 }))
      await attempt(() => token[util.inspect.custom](0, {}))
      const before = locks.filter(lock => lock.locked).length
      const given = await attempt(() => token.unlock())
      assert.strictEqual(locks.filter(lock => lock.locked).length, before - (given === true ? 1 : 0), `${String(first)} ${String(second)} ${String(live)}`)
      if (given !== true) assert.ok(given === false || given instanceof Error)
      for (let n = 0; n < 16; n++) assert.ok(words[n] === 0 || (words[n] === 1 && n % 2 === 0 && n < 8), `word ${n} is ${words[n]}`)
    }
    for (const token of held) token.unlock()
    assert.ok(!locks.some(lock => lock.locked))
  }
})

test('new UnlockToken() stands for nothing, with whichever arguments', () => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const [position, serial] = Object.getOwnPropertySymbols(token)
  for (const args of [[], [token[position], token[serial]], [token], [lock, 0, token[position], token[serial], false]]) {
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
    for (const wrap of [Object.freeze, token => new Proxy(token, {}), token => new Proxy(token, { set: () => { throw new Error('a trap was called') } })]) {
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
  const attempts = [
    token => condition.waitAsync(token, { get timeout () { token.unlock(); return 5 } }),
    token => condition.waitAsync(token, { get signal () { token.unlock(); return undefined } }),
    token => condition.waitAsync(token, { signal: { get aborted () { token.unlock(); return false }, addEventListener () {} } }),
    token => condition.waitForAsync(token, () => { token.unlock(); return false }),
    token => condition.waitForAsync(token, () => { token.unlock(); return false }, { timeout: 1 }),
    token => condition.waitForAsync(token, () => { token.unlock(); return true }),
    // While the signal is joined.
    token => {
      let readings = 0
      return condition.waitAsync(token, { signal: { get aborted () { if (++readings === 2) token.unlock(); return false }, addEventListener () {} } })
    },
    token => condition.waitAsync(token, { signal: { aborted: false, addEventListener () { token.unlock() } } }),
    token => condition.waitAsync(Object.defineProperty(token, 'ownerDied', { get () { token.unlock(); return true } }))
  ]
  for (const run of attempts) {
    const [token, kept] = [lock.tryLock(), other.tryLock()]
    const error = await attempt(() => run(token))
    assert.strictEqual(error.code, 'ERR_NOT_LOCKED', String(error))
    assert.deepStrictEqual([lock.locked, other.locked, kept.locked], [false, true, true])
    assert.strictEqual(kept.unlock(), true)
    assert.strictEqual(api.waiterCount(new Int32Array(sab), 2), 0)
  }
})

test('a getter of a token that unlocks it reaches no other entry of the robust list', async t => {
  const worker = startWorker(t, ({ api, data: sab }) => {
    const lock = new api.RwLock(sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    const others = [8, 12].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    const codes = []
    for (const use of [token => condition.wait(token, { timeout: 1 }), token => token.downgrade()]) {
      const before = others[0].lock()
      const token = lock.lock()
      const behind = others[1].lock()
      Object.defineProperty(token, 'ownerDied', { get () { token.unlock(); return true } })
      try {
        use(token)
      } catch (error) {
        codes.push(error.code)
      }
      if (api.snapshot().held.length !== 2) throw new Error(JSON.stringify(api.snapshot().held))
      if (!before.unlock() || !behind.unlock()) throw new Error('a token is dead')
    }
    return codes
  }, new SharedArrayBuffer(16))
  assert.deepStrictEqual(await worker.done(), ['ERR_NOT_LOCKED', 'ERR_NOT_LOCKED'])
})

test('inherited properties are no hooks of a wait', async () => {
  const sab = new SharedArrayBuffer(16)
  const latch = new api.Latch(sab, { count: 1 })
  const barrier = new api.Barrier(sab, { byteOffset: 4, parties: 2 })
  const signal = { aborted: false, addEventListener () {}, removeEventListener () {} }
  const called = []
  const keys = ['onEnqueuing', 'onEnqueued', 'onNotified']
  const { prototype } = Object
  for (const key of keys) Object.defineProperty(prototype, key, { configurable: true, get: () => function () { called.push(key, this) }, set () {} })
  const waits = [latch.waitAsync(), barrier.waitAsync(), api.waitAsync(new Int32Array(sab), 3, 0, undefined, { signal }).value]
  for (const key of keys) delete prototype[key]
  assert.deepStrictEqual(called, [])
  latch.countDown()
  waits.push(barrier.waitAsync())
  api.notify(new Int32Array(sab), 3)
  await Promise.all(waits)
})

test('no promise that hooks see has what a request for a name is granted', { skip: HIDES_PROMISES }, async () => {
  const promises = []
  let release
  const first = api.locks.request('a name', () => new Promise(resolve => { release = resolve }))
  await undefined
  await undefined
  const init = (id, type, trigger, resource) => { if (type === 'PROMISE') promises.push(resource.promise || resource) }
  const hook = createHook({ init }).enable()
  const second = api.locks.request('a name', () => 'granted')
  hook.disable()
  assert.ok(promises.length > 2, `${promises.length} promises`)
  release()
  assert.strictEqual(await second, 'granted')
  await first
  for (const value of await Promise.all(promises)) assert.ok(value === undefined || value === 'granted', util.inspect(value))
})

test('a signal whose code begins another call, or that calls the listener and throws', async () => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  let other
  const nesting = { aborted: false, addEventListener () { other = lock.executeLocked(() => {}) }, removeEventListener () {} }
  const promise = lock.executeLocked(() => {}, { signal: nesting })
  assert.deepStrictEqual([api.unref(promise), api.unref(other)], [true, true])
  api.ref(promise)
  const calling = { aborted: false, reason: 'aborted', addEventListener (_, listener) { listener(); throw new Error('of a signal') } }
  const word = new Int32Array(new SharedArrayBuffer(4))
  for (const begin of [() => lock.lockAsync({ signal: calling }), () => lock.executeLocked(() => {}, { signal: calling }), () => api.waitAsync(word, 0, 0, undefined, { signal: calling }).value]) {
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
  for (const key of ['locked', 'unlock']) Object.defineProperty(token, key, { get () { throw new Error(`${key} was read`) } })
  const result = condition.waitAsync(token)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(condition.notify(), 1)
  assert.strictEqual(await result, true)
  assert.strictEqual(lock.locked, true)
  lock.unlock()
})
