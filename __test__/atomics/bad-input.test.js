'use strict'

// Strange arguments: they throw the errors of the specification, in its order, and leave no waiter.

const assert = require('assert')
const asyncHooks = require('async_hooks')
const vm = require('vm')
const { MessageChannel } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { atTheEndOfTheStack, converted } = require('../fixtures/odd-calls')
const size = require('../fixtures/size')
const { HAS_BIGINT64, now, randomFrom, runChild, startWorker, words } = require('../fixtures/queue-toolbox')

const NO_BIGINT64 = HAS_BIGINT64 ? undefined : 'this Node has no BigInt64Array'
const NO_GROWABLE = !('growable' in SharedArrayBuffer.prototype) && 'this Node has no growable SharedArrayBuffer'

const ALL = ['wait', 'notify', 'waitAsync']
const WAITS = ['wait', 'waitAsync']
const OTHERS = [
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Uint32Array, Float32Array, Float64Array
]
const big = (value) => BigInt(value)

/** Throws: it must not be called. */
const trap = () => { throw new Error('it was called') }
/** An argument that must not be looked at. */
const poison = converted(0, trap)

class Mine extends Error {}
const throwing = converted(0, () => { throw new Mine('from the argument') })

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0)
/** Returns how many wait for all words of an array. */
const waiters = (array) => sum(Array.from(array, (_, index) => api.waiterCount(array, index)))

/** Expects a call to throw an error of that kind. No waiter is left. */
function refuses (method, args, kind, array) {
  const isRight = error => error instanceof kind && typeof error.message === 'string'
  assert.throws(() => Atomics[method](...args), isRight, method)
  if (array) assert.strictEqual(waiters(array), 0)
}

/** A notification or a wait that ends at once, to see that an argument is accepted. */
const harmless = {
  wait: (array, index) => Atomics.wait(array, index, 0, 0),
  waitAsync: (array, index) => Atomics.waitAsync(array, index, 0, 0).value,
  notify: (array, index) => Atomics.notify(array, index, 0)
}

/** Detaches an array, by which its length becomes 0. */
function detach (array) {
  const { port1 } = new MessageChannel()
  port1.postMessage(array.buffer, [array.buffer])
  port1.close()
  return array
}

test('an array that is no Int32Array or BigInt64Array is a TypeError before any other argument is read', () => {
  const shared = new SharedArrayBuffer(64)
  const tag = { get [Symbol.toStringTag] () { return 'Int32Array' } }
  const strange = [
    undefined, null, 0, 1, NaN, true, 'Int32Array', Symbol('s'), {}, [], [1, 2], () => {}, class {}, /x/, new Date(),
    new Map(), Promise.resolve(), shared, new ArrayBuffer(8), new DataView(shared), Int32Array, Int32Array.prototype,
    Object.create(new Int32Array(shared)), new Proxy(new Int32Array(shared), {}), { __proto__: Int32Array.prototype },
    Object.assign(Object.create(tag), { length: 1, buffer: shared, byteOffset: 0 }),
    new Proxy({}, { get: trap, getPrototypeOf: trap }),
    vm.runInNewContext('new Uint32Array(new SharedArrayBuffer(8))'), vm.runInNewContext('({})')
  ].concat(OTHERS.map(OtherArray => new OtherArray(shared)))
  if (HAS_BIGINT64) strange.push(new BigUint64Array(shared), big(1))
  for (const each of strange) for (const method of ALL) refuses(method, [each, poison, poison, poison], TypeError)
  for (const each of strange) assert.throws(() => api.waiterCount(each, poison), TypeError)
  for (const method of ALL) refuses(method, [], TypeError)
})

test('an array on an ArrayBuffer: wait and waitAsync throw before the index is looked at, notify gives 0', () => {
  for (const method of WAITS) refuses(method, [new Int32Array(4), poison, poison, poison], TypeError)
  const order = []
  const logged = (name, value) => converted(value, () => { order.push(name) })
  assert.strictEqual(Atomics.notify(new Int32Array(4), logged('index', 3), logged('count', 1)), 0)
  assert.deepStrictEqual(order, ['index', 'count'])
  refuses('notify', [new Int32Array(4), 4, poison], RangeError)
  refuses('notify', [new Int32Array(4), 3, throwing], Mine)
  assert.strictEqual(api.waiterCount(new Int32Array(4), 3), 0)
})

test('a detached array: a TypeError', () => {
  for (const TypedArray of HAS_BIGINT64 ? [Int32Array, BigInt64Array] : [Int32Array]) {
    for (const method of ALL) refuses(method, [detach(new TypedArray(4)), poison, poison, poison], TypeError)
  }
})

test('an array that is detached while an argument is converted', () => {
  for (const place of [1, 2]) {
    const array = new Int32Array(4)
    const detaching = converted(1, () => { detach(array) })
    assert.strictEqual(Atomics.notify(...Object.assign([array, 1, 1], { [place]: detaching })), 0)
    assert.strictEqual(array.length, 0)
  }
})

test('an index out of range: a RangeError, before the value is looked at', () => {
  const array = words(4)
  const outside = [
    -1, 4, 5, 2 ** 31, 2 ** 32, 2 ** 32 + 1, 2 ** 53, 2 ** 62, 1e300, Infinity, -Infinity, -(2 ** 53), -1.5, '4', '-1',
    'Infinity', [7], { valueOf: () => -2 }
  ]
  for (const index of outside) {
    for (const method of ALL) refuses(method, [array, index, poison, poison], RangeError, array)
    assert.throws(() => api.waiterCount(array, index), RangeError)
  }
  const shared = new SharedArrayBuffer(16)
  for (const empty of [words(0), new Int32Array(shared, 16), new Int32Array(shared, 8, 0), new Int32Array(0)]) {
    for (const index of [0, -0, undefined]) {
      refuses('notify', [empty, index, poison], RangeError)
      if (!(empty.buffer instanceof SharedArrayBuffer)) continue
      for (const method of WAITS) refuses(method, [empty, index, poison, poison], RangeError)
    }
  }
})

test('an index is converted as ToIndex does, once', () => {
  const array = words(4)
  array[1] = 0
  const inside = [
    [0, [0, -0, 0.9, -0.9, NaN, undefined, null, false, '', 'x', [], {}, () => {}, '-0']],
    [1, [1, 1.999, '1', true, [1], '0x1']],
    [3, [3, '3.7']]
  ]
  for (const [expected, indices] of inside) {
    for (const index of indices) {
      const { value } = Atomics.waitAsync(array, index, 0, 60000)
      assert.strictEqual(api.waiterCount(array, expected), 1, String(index))
      assert.strictEqual(Atomics.notify(array, index), 1)
      assert.strictEqual(Atomics.wait(array, index, 0, 0), 'timed-out')
      assert.ok(value instanceof Promise)
    }
  }
  for (const method of ALL) {
    let calls = 0
    harmless[method](array, converted(2, () => { calls++ }))
    assert.strictEqual(calls, 1, method)
  }
})

test('arguments are converted in the order of the specification, as numbers, once each', () => {
  const array = words(4)
  const log = []
  const logged = (name, value) => converted(value, hint => { log.push(`${name} ${hint}`) })
  const waits = (value) => {
    for (const method of WAITS) Atomics[method](array, logged('index', 1), logged('value', value), logged('timeout', 0))
  }
  waits(0)
  // Also with another expected value, which is compared only after these checks.
  waits(5)
  Atomics.notify(array, logged('index', 1), logged('count', 0))
  const order = ['index number', 'value number', 'timeout number']
  assert.deepStrictEqual(log, order.concat(order, order, order, ['index number', 'count number']))
})

test('an argument that throws: its own error, and those behind it are not looked at', () => {
  const array = words(4)
  for (const method of WAITS) {
    refuses(method, [array, throwing, poison, poison], Mine, array)
    refuses(method, [array, 0, throwing, poison], Mine, array)
    refuses(method, [array, 0, 0, throwing], Mine, array)
    refuses(method, [array, 0, 5, throwing], Mine, array)
  }
  refuses('notify', [array, throwing, poison], Mine, array)
  refuses('notify', [array, 0, throwing], Mine, array)
  const noPrimitive = { [Symbol.toPrimitive]: () => ({}) }
  for (const place of [1, 2]) {
    const args = Object.assign([array, 0, 0, 0], { [place]: noPrimitive })
    for (const method of ALL) refuses(method, args, TypeError, array)
  }
  for (const method of WAITS) refuses(method, [array, 0, 0, noPrimitive], TypeError, array)
})

test('symbols, and BigInts in the wrong place: a TypeError', () => {
  const array = words(4)
  const wrong = [Symbol('s'), Symbol.iterator, Object(Symbol('s'))]
  if (typeof BigInt === 'function') wrong.push(big(0), big(1), Object(big(0)), { valueOf: () => big(0) })
  for (const each of wrong) {
    for (const method of ALL) {
      refuses(method, [array, each, poison, poison], TypeError, array)
      refuses(method, [array, 0, each, poison], TypeError, array)
    }
    for (const method of WAITS) refuses(method, [array, 0, 0, each], TypeError, array)
  }
})

test('values for a BigInt64Array', { skip: NO_BIGINT64 }, () => {
  const array = new BigInt64Array(new SharedArrayBuffer(32))
  for (const method of WAITS) {
    for (const value of [0, 1, NaN, undefined, null, Symbol('s'), { valueOf: () => 0 }, Object(1)]) {
      refuses(method, [array, 0, value, poison], TypeError, array)
    }
    for (const value of ['x', '1.5', '1n', {}]) refuses(method, [array, 0, value, poison], SyntaxError, array)
    for (const value of [false, '', '0', [], big(0), Object(big(0)), big(2) ** big(64), { valueOf: () => big(0) }]) {
      const result = Atomics[method](array, 0, value, 0)
      assert.strictEqual(method === 'wait' ? result : result.value, 'timed-out')
    }
    refuses(method, [array, big(0), big(0), poison], TypeError, array)
    refuses(method, [array, 0, big(0), big(0)], TypeError, array)
    refuses(method, [array, 4, poison, poison], RangeError, array)
  }
  refuses('notify', [array, 0, big(1)], TypeError, array)
})

test('properties of the array itself are not looked at', () => {
  const array = words(4)
  // An element cannot become an accessor.
  const keys = [
    'length', 'buffer', 'byteOffset', 'byteLength', 'constructor', Symbol.toStringTag, Symbol.toPrimitive,
    Symbol.iterator
  ]
  for (const key of keys) Object.defineProperty(array, key, { get: trap })
  Object.setPrototypeOf(array, null)
  assert.strictEqual(Atomics.wait(array, 3, 0, 0), 'timed-out')
  assert.strictEqual(Atomics.waitAsync(array, 3, 0, 0).value, 'timed-out')
  assert.strictEqual(Atomics.notify(array, 3), 0)
  for (const method of ALL) refuses(method, [array, 4, poison, poison], RangeError)
})

test('an array of another realm, and arguments that are', () => {
  const realm = vm.createContext({})
  const array = vm.runInContext('new Int32Array(new SharedArrayBuffer(16))', realm)
  const floats = vm.runInContext('new Float64Array(new SharedArrayBuffer(8))', realm)
  const unshared = vm.runInContext('new Int32Array(4)', realm)
  const two = vm.runInContext('({ valueOf () { return 2 } })', realm)
  const foreign = vm.runInContext('({ valueOf () { throw new RangeError("foreign") } })', realm)
  assert.strictEqual(Atomics.wait(array, two, 0, 0), 'timed-out')
  assert.strictEqual(Atomics.notify(array, two, two), 0)
  for (const method of ALL) {
    refuses(method, [array, 4, poison, poison], RangeError, array) // of the function's realm, not of the array's
    const isForeign = error => error.message === 'foreign' && !(error instanceof RangeError)
    assert.throws(() => Atomics[method](array, foreign, 0), isForeign)
    refuses(method, [floats, poison, poison, poison], TypeError)
  }
  for (const method of WAITS) refuses(method, [unshared, poison, poison, poison], TypeError)
})

test('shared memory of WebAssembly', () => {
  let memory
  try {
    memory = new WebAssembly.Memory({ initial: 1, maximum: 3, shared: true })
    if (!(memory.buffer instanceof SharedArrayBuffer)) throw new Error('not shared')
  } catch (_) {
    return // this Node has none
  }
  const before = new Int32Array(memory.buffer)
  assert.strictEqual(Atomics.waitAsync(before, 16383, 0).async, true)
  memory.grow(1)
  const after = new Int32Array(memory.buffer)
  refuses('notify', [before, 16384, 1], RangeError)
  assert.strictEqual(Atomics.notify(after, 16384), 0)
  assert.strictEqual(Atomics.notify(after, 16383), 1)
})

// ——— code that runs in the middle of a call ———

test('an argument whose conversion changes the word: the new value counts', () => {
  for (const place of [1, 2, 3]) {
    const array = words(1)
    const args = Object.assign([array, 0, 0, 0], { [place]: converted(0, () => { array[0] = 1 }) })
    assert.strictEqual(Atomics.wait(...args), 'not-equal')
    array[0] = 0
    assert.strictEqual(Atomics.waitAsync(...args).value, 'not-equal')
    assert.strictEqual(waiters(array), 0)
  }
})

test('an argument whose conversion waits and notifies itself', async () => {
  const array = words(2)
  const promises = []
  const again = (value) => converted(value, () => {
    promises.push(Atomics.waitAsync(array, 0, 0).value, Atomics.waitAsync(array, 1, 0, 60000).value)
    assert.strictEqual(Atomics.wait(array, 0, 0, 0.1), 'timed-out')
    assert.strictEqual(Atomics.notify(array, 1, 1), 1)
  })
  promises.push(Atomics.waitAsync(array, again(0), again(0), again(60000)).value)
  assert.strictEqual(Atomics.wait(array, again(0), again(0), again(0.1)), 'timed-out')
  // Each conversion leaves a waiter at the first word; the wait itself is there, too.
  assert.strictEqual(api.waiterCount(array, 0), 7)
  assert.strictEqual(Atomics.notify(array, again(0), again(Infinity)), 9)
  assert.strictEqual(waiters(array), 0)
  assert.deepStrictEqual(new Set(await Promise.all(promises)), new Set(['ok']))
})

test('an index whose conversion grows the buffer is compared with the length before', { skip: NO_GROWABLE }, () => {
  for (const method of ALL) {
    for (const touched of [false, true]) {
      const buffer = new SharedArrayBuffer(4, { maxByteLength: 64 })
      const array = new Int32Array(buffer)
      if (touched) Atomics.notify(array, 0)
      const growing = converted(5, () => {
        buffer.grow(64)
        if (touched) Atomics.notify(array, 10)
      })
      refuses(method, [array, growing, poison, poison], RangeError, array)
      harmless[method](array, 5)
    }
  }
})

test('an argument whose conversion ends the thread', async t => {
  const array = words(1)
  for (let place = 1; place < 4; place++) {
    for (const method of WAITS) {
      const thread = startWorker(t, { array, place, method }, ({ Atomics, data: { array, place, method } }) => {
        Atomics.waitAsync(array, 0, 0)
        const ending = { valueOf () { process.exit(0) } }
        Atomics[method](...Object.assign([array, 0, 0, 60000], { [place]: ending }))
      })
      thread.done().catch(() => {})
      await thread.exited
      assert.strictEqual(waiters(array), 0)
    }
  }
})

test('hooks of async_hooks that wait and notify when a promise is made and when it is resolved', async t => {
  const array = words(3)
  const nested = []
  let depth = 0
  const reenter = () => {
    if (depth > 0 || nested.length >= 600) return
    depth++
    nested.push(Atomics.waitAsync(array, 1, 0).value)
    Atomics.waitAsync(array, 2, 0, 60000)
    Atomics.notify(array, 2)
    Atomics.wait(array, 0, 1, 1)
    depth--
  }
  const init = (_, type) => { if (type === 'PROMISE') reenter() }
  const hook = asyncHooks.createHook({ init, promiseResolve: reenter }).enable()
  t.after(() => hook.disable())
  const promises = []
  for (let n = 0; n < 100; n++) promises.push(Atomics.waitAsync(array, 0, 0, n % 2 ? undefined : 60000).value)
  assert.strictEqual(new Set(promises).size, 100)
  assert.strictEqual(Atomics.notify(array, 0), 100)
  const outcomes = await Promise.all(promises)
  hook.disable()
  assert.deepStrictEqual(outcomes, promises.map(() => 'ok'))
  assert.ok(nested.length > 100, String(nested.length))
  assert.strictEqual(new Set(nested).size, nested.length)
  assert.strictEqual(Atomics.notify(array, 1), nested.length)
  assert.deepStrictEqual(await Promise.all(nested), nested.map(() => 'ok'))
  assert.strictEqual(waiters(array), 0)
})

// ——— no stack left ———

const TRIES = { paddings: 6, depths: 600 }
const COUNT = TRIES.paddings * TRIES.depths

/** Returns the results of attempts near the end of the stack; some succeed, and some do not. */
function resultsAtTheEnd (attempt) {
  const { results, done, thrown } = atTheEndOfTheStack(attempt, TRIES)
  assert.ok(thrown > 0 && done > 0, `${thrown} ${done}`)
  return results
}

test('waitAsync without stack left either lines up a promise or throws', async () => {
  const array = words(1)
  const results = resultsAtTheEnd(lined => Atomics.waitAsync(array, 0, 0, lined % 2 ? 60000 : undefined))
  assert.strictEqual(api.waiterCount(array, 0), results.length)
  assert.strictEqual(Atomics.notify(array, 0), results.length)
  assert.deepStrictEqual(new Set(await Promise.all(results.map(({ value }) => value))), new Set(['ok']))
})

test('waitAsync without stack left, of arrays not seen before', async () => {
  const buffer = new SharedArrayBuffer(4)
  const arrays = Array.from({ length: COUNT }, () => new Int32Array(buffer))
  const results = resultsAtTheEnd((_, tries) => Atomics.waitAsync(arrays[tries], 0, 0))
  assert.strictEqual(Atomics.notify(arrays[0], 0), results.length)
  await Promise.all(results.map(({ value }) => value))
})

test('wait without stack left leaves nothing in the line', () => {
  const array = words(1)
  // Some are long enough to return to JavaScript in between.
  const outcomes = resultsAtTheEnd(waited => Atomics.wait(array, 0, 0, waited % 200 === 50 ? 40 : 1e-6))
  assert.deepStrictEqual(new Set(outcomes), new Set(['timed-out']))
  assert.strictEqual(api.waiterCount(array, 0), 0)
})

for (const count of [1, 3]) {
  // With one, the queue's own waiters are enough; for three, the host's queue is asked for the rest, too.
  test(`notify without stack left wakes none that it does not count: one waiter, ${count} asked for`, async () => {
    const array = words(COUNT)
    let settled = 0
    const promises = Array.from(array, (_, index) => Atomics.waitAsync(array, index, 0).value.then(() => { settled++ }))
    let woken = sum(resultsAtTheEnd((_, tries) => Atomics.notify(array, tries, count)))
    assert.ok(woken > 0)
    for (let index = 0; index < array.length; index++) woken += Atomics.notify(array, index)
    await Promise.all(promises)
    assert.strictEqual(woken, settled)
  })
}

test('the package can be loaded after a try that ran out of stack', async t => {
  const { code, signal, stderr, lines } = await runChild(t, async ({ require, say, data }) => {
    // A thread of its own, in which nothing has loaded the package yet; without what an install gives to workers.
    const { Worker } = require('worker_threads')
    const source = `
      const { parentPort, workerData } = require('worker_threads')
      let tries = 0
      let loaded = 0
      const dive = () => {
        try { dive() } catch (_) {}
        if (tries++ < 120) {
          try {
            const api = require(workerData)
            api.waiterCount(new Int32Array(new SharedArrayBuffer(4)), 0)
            loaded++
          } catch (_) {}
        }
      }
      dive()
      const { wait, waitAsync, notify } = require(workerData)
      const array = new Int32Array(new SharedArrayBuffer(4))
      const { value } = waitAsync(array, 0, 0)
      const woken = notify(array, 0)
      const blocked = wait(array, 0, 0, 1)
      value.then(outcome => parentPort.postMessage([outcome, woken, blocked].join()))`
    const worker = new Worker(source, { eval: true, workerData: data })
    await new Promise((resolve, reject) => {
      worker.on('message', say)
      worker.on('error', reject)
      worker.on('exit', resolve)
    })
  }, require.resolve('../../pure'))
  assert.strictEqual(signal, null, stderr)
  assert.strictEqual(code, 0, stderr)
  assert.deepStrictEqual(lines, ['ok,1,timed-out'], stderr)
})

// ——— everything at once ———

test('random arguments only ever throw, and leave no waiter but those of promises that were returned', async () => {
  const seed = Number(process.env.SEED || Date.now() % 1e9)
  console.log(`# seed ${seed}`)
  const random = randomFrom(seed)
  const pick = (list) => list[Math.floor(list.length * random())]
  const arrays = [
    words(4), words(1), new Int32Array(new SharedArrayBuffer(64), 8), new Int32Array(4), new Float64Array(4), words(0),
    undefined, {}
  ]
  const numbers = [0, 1, 2, 3, -0, -1, 4, 0.5, 1e300, 5e-324]
    .concat([NaN, Infinity, -Infinity, 2 ** 31, 2 ** 32, 2 ** 53])
    .concat('1', 'x', '', null, undefined, true, [[], [1]], {}, throwing, Symbol('s'))
  const short = [0, -1, 0.01, 0.1, -Infinity, null, '', '0.05', false, [], throwing, Symbol('s')]
  if (HAS_BIGINT64) {
    arrays.push(new BigInt64Array(new SharedArrayBuffer(32)))
    numbers.push(big(0), big(1), big(2) ** big(63))
    short.push(big(0))
  }
  const pending = new Set()
  const all = []
  const end = now() + size(1000, 300)
  let calls = 0
  while (now() < end || calls <= 1000 || all.length === 0) {
    for (let n = 0; n < 200; n++) {
      calls++
      const array = pick(arrays)
      const anything = () => pick(numbers)
      try {
        switch (pick(['wait', 'waitAsync', 'waitAsync', 'notify', 'notify', 'waiterCount', 'ref'])) {
          case 'wait': Atomics.wait(array, anything(), anything(), pick(short)); break
          case 'notify': Atomics.notify(array, anything(), anything()); break
          case 'waiterCount': api.waiterCount(array, anything()); break
          case 'ref': pick([api.ref, api.unref])(pick([anything(), Promise.resolve(), array])); break
          case 'waitAsync': {
            const { async, value } = Atomics.waitAsync(array, anything(), anything(), anything())
            if (!async) break
            pending.add(value)
            all.push(value.then(() => pending.delete(value)))
          }
        }
      } catch (error) {
        if (![TypeError, RangeError, SyntaxError, Mine].some(Kind => error instanceof Kind)) throw error
        assert.ok(!/native|napi|invalid argument/i.test(error.message), error.message)
      }
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  for (const array of arrays.filter(array => array && array.buffer instanceof SharedArrayBuffer)) {
    for (let index = 0; index < array.length; index++) Atomics.notify(array, index)
    assert.strictEqual(waiters(array), 0)
  }
  await Promise.all(all)
  assert.strictEqual(pending.size, 0)
})
