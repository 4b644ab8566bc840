'use strict'

// The constructor of a class accepts clones of its instances (postMessage, workerData).

const assert = require('assert')
const { MessageChannel } = require('worker_threads')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { NAMES, bytesOf, optionsOf } = require('../../fixtures/every-class')
const { rejection } = require('../../fixtures/lock-toolbox')
const { startWorker, until } = require('../../fixtures/queue-toolbox')

/** Makes memory for one behind so many bytes. */
const memoryFor = (name, before = 8) => new SharedArrayBuffer(before + bytesOf(name))
const make = (name, sab = memoryFor(name), byteOffset = 8) =>
  new api[name](sab, Object.assign({ byteOffset }, optionsOf(name)))

/** Posts a value, and returns its clone. */
async function posted (value) {
  const { port1, port2 } = new MessageChannel()
  const received = new Promise(resolve => port2.once('message', resolve))
  port1.postMessage(value)
  const clone = await received
  port1.close()
  return clone
}

const wordOf = ({ buffer, byteOffset }) => new Int32Array(buffer, byteOffset, 1)

/** Checks that two instances are views of one word: by writing. */
function assertSameWord (one, other) {
  const [mine, theirs] = [wordOf(one), wordOf(other)]
  Atomics.store(mine, 0, 1)
  assert.strictEqual(Atomics.load(theirs, 0), 1)
  Atomics.store(mine, 0, 0)
  assert.strictEqual(one.byteOffset, other.byteOffset)
}

for (const name of NAMES) {
  const Class = api[name]
  const options = optionsOf(name)
  const [further] = Object.keys(options)
  const own = name === 'AsyncLock' ? ['i32a', 'sab'] : Object.keys(options)
  const keys = ['buffer', 'byteOffset', 'kind', ...own].sort()
  /** Throws unless `call` throws an error whose message begins with the class. */
  const refused = (call, type, message) =>
    assert.throws(call, { name: type, message: new RegExp(`^${name}: ${message}`) })

  test(`${name}: a port makes a plain object of it, from which the constructor makes it again, and again`, async () => {
    const original = make(name)
    const before = Array.from(new Int32Array(original.buffer))
    let instance = original
    for (let n = 0; n < 3; n++) {
      const clone = await posted(instance)
      assert.strictEqual(Object.getPrototypeOf(clone), Object.prototype)
      assert.deepStrictEqual(Reflect.ownKeys(clone).sort(), keys)
      assert.throws(() => Object.getOwnPropertyDescriptor(Class.prototype, 'waiters').get.call(clone), TypeError)
      instance = new Class(clone)
      assert.ok(instance instanceof Class)
      assert.strictEqual(instance.buffer, clone.buffer)
      assertSameWord(original, instance)
      if (further !== undefined) assert.strictEqual(instance[further], options[further])
    }
    assert.deepStrictEqual(Array.from(new Int32Array(original.buffer)), before, 'nothing is written')
    if (name !== 'Queue') assert.ok(before.every(word => word === 0))
  })

  test(`${name}: the constructors of the other classes refuse it, and its clone`, async () => {
    const original = make(name)
    const clone = await posted(original)
    for (const other of NAMES.filter(each => each !== name)) {
      for (const given of [original, clone]) {
        const kind = `kind must be the string "${other}", not the string "${name}"`
        const message = `${other}: ${kind}: this is an instance of another class`
        assert.throws(() => new api[other](given, optionsOf(other)), { name: 'TypeError', message })
      }
    }
    // Of a version that had no kinds.
    const { buffer, byteOffset } = clone
    assertSameWord(original, new Class(Object.assign({ buffer, byteOffset }, options)))
  })

  test(`${name}: a method without its object says so`, () => {
    const { waiters } = Object.getOwnPropertyDescriptors(Class.prototype)
    const message = /^this method must be called on a lock, .* not on undefined: call it as a method, or bind it$/
    assert.throws(() => waiters.get.call(undefined), { name: 'TypeError', message })
    assert.throws(() => waiters.get.call(null), TypeError)
  })

  test(`${name}: as workerData, beside other things, and by structuredClone`, async t => {
    const original = make(name)
    const thread = startWorker(t, { it: { clone: original }, name }, ({ api, data: { it: { clone }, name } }) => {
      const instance = new api[name](clone)
      Atomics.store(new Int32Array(instance.buffer), 0, 7)
      return { byteOffset: instance.byteOffset, class: instance.constructor.name, waiters: instance.waiters }
    })
    assert.deepStrictEqual(await thread.done(), { byteOffset: 8, class: name, waiters: 0 })
    assert.strictEqual(new Int32Array(original.buffer)[0], 7)
    if (typeof structuredClone === 'function') assertSameWord(original, new Class(structuredClone(original)))
  })

  test(`${name}: an instance is as good as its clone`, () => {
    const original = make(name)
    assertSameWord(original, new Class(original))
    assertSameWord(original, new Class(Object.freeze(make(name, original.buffer))))
    assertSameWord(original, new Class(new Proxy(original, {})))
  })

  test(`${name}: an option beside a clone may repeat what it says, and not contradict it`, async () => {
    const clone = await posted(make(name))
    for (const given of [
      undefined, {}, { byteOffset: undefined }, { byteOffset: 8 }, Object.assign({ byteOffset: 8 }, options)
    ]) {
      assert.strictEqual(new Class(clone, given).byteOffset, 8)
    }
    for (const wrong of [0, 4, 12, '8', null, NaN]) {
      const message = 'byteOffset is .*, but the clone has the number 8: leave the option out$'
      refused(() => new Class(clone, { byteOffset: wrong }), 'TypeError', message)
    }
    if (further !== undefined) {
      const has = `the clone has the number ${options[further]}`
      const message = `${further} is the number 3, but ${has}: leave the option out$`
      refused(() => new Class(clone, { [further]: 3 }), 'TypeError', message)
    }
    assert.throws(() => new Class(clone, { offset: 8 }), /options may have .*byteOffset.*, not "offset"/)
    assert.throws(() => new Class(clone, 8), /options must be an object/)
  })

  test(`${name}: of a subclass, with properties and a constructor of its own`, async () => {
    class Mine extends Class {
      constructor (buffer, extra = 'none') {
        super(buffer, options)
        this.extra = extra
      }
    }
    const original = new Mine(memoryFor(name, 0), { nested: [1] })
    const clone = await posted(original)
    assert.deepStrictEqual(clone.extra, { nested: [1] })
    const again = new Mine(clone, clone.extra)
    assert.ok(again instanceof Mine)
    assertSameWord(original, again)
    assertSameWord(original, new Class(clone))
  })

  test(`${name}: what looks like a clone and is none is refused, with a word on what is wrong`, () => {
    const buffer = memoryFor(name, 12)
    const rest = Object.assign({ byteOffset: 8 }, options)
    const clone = more => Object.assign({ buffer }, rest, more)
    const trapped = (object, key) =>
      Object.defineProperty(object, key, { enumerable: true, get: () => assert.fail('a getter was called') })
    const noClone = [
      {}, [], () => {}, rest, clone({ buffer: new ArrayBuffer(16) }), clone({ buffer: { buffer } }),
      new Int32Array(buffer), new DataView(buffer), Object.create(clone()), Object.create(make(name)),
      trapped(clone(), 'buffer'), new Proxy({}, { get: () => buffer }), clone({ buffer: new Proxy(buffer, {}) })
    ]
    const must = 'buffer must be a SharedArrayBuffer, or the clone of an instance, not (an object|a function): '
    const refuses = (given, ...error) => refused(() => new Class(given), ...error)
    for (const given of noClone) refuses(given, 'TypeError', must)
    const numbers = [undefined, null, '8', 1.5, NaN, {}]
    for (const byteOffset of numbers) refuses(clone({ byteOffset }), 'TypeError', 'byteOffset must be an integer, not ')
    refuses(trapped(clone(), 'byteOffset'), 'TypeError', 'byteOffset must be an integer, not undefined')
    for (const byteOffset of [-4, 2, 16, 2 ** 31, 2 ** 53]) {
      refuses(clone({ byteOffset }), 'RangeError', 'byteOffset must be a multiple of [48] from 0 to 12')
    }
    if (further !== undefined) {
      for (const value of [undefined, null, '2', 1.5]) {
        refuses(clone({ [further]: value }), 'TypeError', '.*must be an integer, not ')
      }
      for (const value of [-1, 2 ** 31]) refuses(clone({ [further]: value }), 'RangeError', '.*must be from [01] to ')
      refuses(trapped(clone(), further), 'TypeError', '.*must be an integer, not undefined')
    }
    const thrown = new Error('from a trap')
    const getOwnPropertyDescriptor = () => { throw thrown }
    assert.throws(() => new Class(new Proxy({}, { getOwnPropertyDescriptor })), error => error === thrown)
    assert.ok(new Int32Array(buffer).every(word => word === 0))
  })

  test(`${name}: properties of Object.prototype are no part of a clone`, () => {
    const buffer = new SharedArrayBuffer(16)
    const polluted = Object.assign({ buffer, byteOffset: 4, value: buffer }, options)
    const prototype = Object.getPrototypeOf({})
    for (const key of Object.keys(polluted)) {
      Object.defineProperty(prototype, key, { value: polluted[key], configurable: true, writable: true })
    }
    try {
      const getters = Object.defineProperty({}, 'buffer', { __proto__: null, get: () => buffer, enumerable: true })
      for (const given of [{}, getters]) {
        assert.throws(() => new Class(given), /buffer must be a SharedArrayBuffer, or the clone of an instance/)
      }
    } finally {
      for (const key of Object.keys(polluted)) delete prototype[key]
    }
  })
}

test('all classes have buffer and byteOffset; an AsyncLock has sab and i32a, too', () => {
  for (const name of NAMES) {
    const sab = memoryFor(name, 16)
    for (const byteOffset of [0, 16, -0]) {
      const instance = make(name, sab, byteOffset)
      assert.strictEqual(instance.buffer, sab)
      assert.ok(Object.is(instance.byteOffset, byteOffset + 0), name)
    }
  }
  const sab = new SharedArrayBuffer(16)
  const lock = make('AsyncLock', sab, 12)
  assert.strictEqual(lock.sab, sab)
  assert.deepStrictEqual([lock.i32a.buffer, lock.i32a.byteOffset, lock.i32a.length], [sab, 12, 1])
})

test('what is made of a clone excludes, signals and wakes as what it was made of', async t => {
  const things = {
    lock: new api.AsyncLock(),
    rw: new api.RwLock(),
    semaphore: new api.Semaphore(),
    condition: new api.Condition(),
    barrier: api.Barrier.create({ parties: 2 }),
    latch: api.Latch.create({ count: 1 })
  }
  const { lock, rw, semaphore, condition, barrier, latch } = things
  const thread = startWorker(t, things, ({ data, revive }) => {
    const { lock, rw, semaphore, condition, barrier, latch } = revive(data)
    const token = lock.lock()
    condition.wait(token)
    token.unlock()
    semaphore.hold(2).unlock()
    rw.executeSharedSync(() => {})
    barrier.wait()
    latch.wait()
    return 'through'
  })
  const waits = (thing) => until(() => thing.waiters === 1)
  await waits(condition)
  assert.strictEqual(condition.notify(), 1)
  await waits(semaphore)
  const writer = rw.tryLock()
  semaphore.release(2)
  await waits(rw)
  writer.unlock()
  await barrier.waitAsync()
  await waits(latch)
  latch.countDown()
  assert.strictEqual(await thread.done(), 'through')
  assert.deepStrictEqual([lock.locked, semaphore.available], [false, 2])
})

test('a method that is called on a clone is an error that says so', async () => {
  const lock = make('AsyncLock')
  const clone = await posted(lock)
  assert.strictEqual(clone.tryLock, undefined)
  for (const method of ['tryLock', 'unlock']) {
    const message = /must be called on a lock, .*: give it to the constructor/
    assert.throws(() => lock[method].call(clone), { name: 'TypeError', message })
  }
  assert.ok(await rejection(lock.lockAsync.call(clone)) instanceof TypeError)
  assert.throws(() => lock.tryLock.call({}), { name: 'TypeError', message: /^((?!constructor).)*$/ })
})

const growable = typeof SharedArrayBuffer.prototype.grow === 'function'
test('of a growable buffer', { skip: !growable && 'no growable SharedArrayBuffer here' }, async () => {
  const sab = new SharedArrayBuffer(16, { maxByteLength: 64 })
  const original = make('Semaphore', sab)
  const clone = await posted(original)
  sab.grow(64)
  assertSameWord(original, new api.Semaphore(clone))
  assertSameWord(make('Semaphore', sab, 60), new api.Semaphore(await posted(make('Semaphore', sab, 60))))
})

test('of a buffer of WebAssembly', async t => {
  let memory
  try {
    memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true })
    if (!(memory.buffer instanceof SharedArrayBuffer)) throw new Error('not shared')
  } catch (_) {
    t.skip('no shared memory of WebAssembly here')
  }
  const original = make('AsyncLock', memory.buffer)
  const token = original.tryLock()
  const again = new api.AsyncLock(await posted(original))
  assert.strictEqual(again.locked, true)
  const next = again.lockAsync()
  token.unlock()
  ;(await next).unlock()
  assert.strictEqual(original.locked, false)
})
