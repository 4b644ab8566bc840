'use strict'

// Random arguments and receivers, of this realm and of another one, for everything that is exported: found by reflection, so that what is new
// is called, too. Each call ends, with a value or with an error that says something; no byte outside of what it was given is written; and
// nothing of it is left.
//
// FUZZ_SEED=N repeats a run, FUZZ_CALLS=N makes a longer one.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { HAS_BIGINT64, randomFrom, sleep, startWorker } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')
const { TAIL } = require('../../../lib/locks/queue/layout')

const SEED = Number(process.env.FUZZ_SEED) || 1
const CALLS = Number(process.env.FUZZ_CALLS) || size(20000, 6000)
/** No argument is this number, so that no wait with a strange timeout begins. */
const VALUE = 0x5EED5EED

/** Calls everything. Returns what was wrong, as texts. Runs in a worker, too: it sees only its argument. */
function fuzz ({ api, data: { seed, calls, value, blocks, hasBigInt64, TAIL }, randomFrom, require, sleep }) {
  const util = require('util')
  const vm = require('vm')
  const { MessageChannel } = require('worker_threads')
  const random = randomFrom(seed)
  const below = (limit) => Math.floor(random() * limit)
  const pick = (list) => list[below(list.length)]
  const wrong = []
  const context = vm.createContext({ SharedArrayBuffer, console })
  const theirs = (source) => vm.runInContext(source, context)
  const thrown = Symbol('thrown by an argument')
  const ignore = () => {}

  // ——— what is called ———

  const callees = []
  const seen = new Set()
  const describe = (name, object, isClass) => {
    for (const key of Reflect.ownKeys(object)) {
      const property = Object.getOwnPropertyDescriptor(object, key)
      const label = `${name}.${String(key)}`
      for (const part of ['value', 'get', 'set']) {
        if (typeof property[part] !== 'function' || (isClass && key === 'prototype') || key === 'constructor' || seen.has(property[part])) continue
        seen.add(property[part])
        callees.push({ label, part, fn: property[part] })
      }
    }
  }
  const classes = []
  for (const name of Object.keys(api)) {
    const it = api[name]
    if (typeof it === 'object' && it !== null) describe(name, Object.getPrototypeOf(it) === Object.prototype ? it : Object.getPrototypeOf(it))
    if (typeof it !== 'function') continue
    const isClass = /^class\b/.test(Function.prototype.toString.call(it))
    callees.push({ label: name, part: isClass ? 'new' : 'value', fn: it })
    if (!isClass) continue
    classes.push({ name, Class: it })
    describe(name, it, true)
    describe(name, it.prototype)
  }

  // ——— what it is given ———

  const sab = new SharedArrayBuffer(256)
  const words = new Int32Array(sab)
  const family = new SharedArrayBuffer(64)
  const messages = new SharedArrayBuffer(8 + api.Queue.byteLength(2, 12) + 8)
  const arrays = [words, new Int32Array(8), new Uint8Array(sab), new Float64Array(2), new Int32Array(sab, 8, 2), theirs('new Int32Array(new SharedArrayBuffer(64)).fill(' + value + ')')]
  if (hasBigInt64) arrays.push(new BigInt64Array(new SharedArrayBuffer(64)).fill(BigInt(value)), new BigUint64Array(sab))
  words.fill(value)
  const detached = new Int32Array(4)
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(detached.buffer, [detached.buffer])
  port1.close()
  port2.close()
  arrays.push(detached)
  const buffers = [sab, family, new ArrayBuffer(8), new SharedArrayBuffer(0), theirs('new SharedArrayBuffer(16)')]
  if (typeof SharedArrayBuffer.prototype.grow === 'function') buffers.push(new SharedArrayBuffer(16, { maxByteLength: 64 }))
  const throwing = { valueOf () { throw thrown }, toString () { throw thrown } }
  const revoked = () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy }
  const hostile = () => new Proxy({}, { get () { throw thrown }, ownKeys () { throw thrown }, getPrototypeOf () { throw thrown } })
  const signal = () => {
    const listeners = new Set()
    const signal = { aborted: below(4) === 0, reason: thrown, addEventListener (_, listener) { listeners.add(listener) } }
    setImmediate(() => { signal.aborted = true; for (const listener of listeners) listener() })
    return signal
  }
  callees.push({ label: 'waitAsync that is cancelled', part: 'value', fn: timeout => api.waitAsync(words, below(words.length), value, timeout, { signal: signal() }) })
  const make = {
    lock: () => new api.AsyncLock(family, { byteOffset: 4 * below(4) }),
    rw: () => new api.RwLock(family, { byteOffset: 16 + 4 * below(2) }),
    semaphore: () => new api.Semaphore(family, { byteOffset: 24 }),
    limit: () => new api.Semaphore(family, { byteOffset: 40, permits: 1 + below(3) }),
    condition: () => new api.Condition(family, { byteOffset: 28 }),
    barrier: () => new api.Barrier(family, { byteOffset: 32, parties: 1 + below(2) }),
    latch: () => new api.Latch(family, { byteOffset: 36, count: below(3) }),
    queue: () => new api.Queue(messages, { byteOffset: 8, capacity: 2, messageSize: 12, format: pick(['clone', 'json']) })
  }
  const tokens = []
  const values = [
    () => undefined, () => undefined, () => null, () => below(20), () => -1, () => 0.5, () => NaN, () => -0, () => Infinity, () => -Infinity, () => 2 ** 31, () => 2 ** 53,
    () => '', () => '0', () => 'x', () => true, () => Symbol('s'), () => [], () => [1], () => ({}), () => ({ valueOf: () => below(8) }), () => throwing, hostile, revoked,
    () => ignore, () => () => { throw thrown }, () => async () => { throw thrown }, () => async () => 1, () => () => new Promise(ignore), () => class {}, () => new Date(), () => new Map(), () => Promise.resolve(),
    () => theirs('({})'), () => theirs('[]'), () => theirs('(() => 1)'), () => Object.create(null), () => globalThis_, () => Object.freeze({}),
    () => pick(arrays), () => pick(arrays), () => pick(arrays), () => pick(buffers), () => pick(buffers), () => pick(buffers),
    () => ({ timeout: below(3) }), () => ({ timeout: pick([NaN, '1', -1, 1e300, null]) }), () => ({ byteOffset: pick([0, 4, 8, 3, -4, 256, 1.5, '4', null]) }),
    () => ({ parties: below(4) }), () => ({ count: below(4) - 1 }), () => ({ permits: below(4) }), () => ({ signal: signal(), timeout: 1 }), () => ({ signal: signal() }), () => ({ signal: hostile() }), () => ({ unknown: 1 }),
    () => ({ capacity: pick([0, 1, 2, 3, 2 ** 28, 2 ** 29]), messageSize: pick([-1, 0, 12, 13, 2 ** 28]) }), () => ({ format: pick(['clone', 'json', 'x', null]) }),
    () => ({ steal: below(2) }), () => ({ get timeout () { throw thrown } }), () => ({ target: {}, force: true }), () => ({ target: hostile() }),
    () => pick(tokens) || null, () => Object.create(api.UnlockToken.prototype), () => Object.assign(Object.create(api.UnlockToken.prototype), pick(tokens)),
    ...Object.keys(make).map(name => make[name]), ...Object.keys(make).map(name => () => Object.create(make[name]())),
    () => pick(classes).Class.prototype
  ]
  if (typeof BigInt === 'function') values.push(() => BigInt(below(5)), () => BigInt(2) ** BigInt(70))
  const globalThis_ = theirs('this')

  // ——— the calls ———

  const isError = (error) => error === thrown || (/^\[object (Error|DOMException)\]$/.test(Object.prototype.toString.call(error)) && typeof error.message === 'string' && error.message !== '')
  const judge = (label, error) => {
    if (!isError(error)) wrong.push(`${label} failed with ${util.inspect(error)}`)
  }
  const promises = []
  const keep = (label, result) => {
    if (result !== null && typeof result === 'object' && result.async === true) result = result.value
    if (result instanceof api.UnlockToken) tokens.push(result)
    if (!util.types || !util.types.isPromise(result)) return
    // A wait that nothing ends must not hold the loop.
    api.unref(result)
    promises.push(result)
    result.then(value => keep(label, value), error => judge(label, error)).catch(error => wrong.push(`${label}: ${error.stack}`))
  }
  const names = () => api.snapshot().held.filter(({ kind }) => kind === 'named').map(({ name }) => name)
  const letGo = () => {
    // Callbacks may never end.
    for (const name of names()) api.locks.request(name, { steal: true }, ignore).catch(ignore)
    for (const token of tokens.splice(0)) token.unlock()
    for (let byteOffset = 0; byteOffset < 16; byteOffset += 4) {
      try { new api.AsyncLock(family, { byteOffset }).unlock() } catch (_) {}
    }
    Atomics.store(new Int32Array(family), 6, 0)
    new api.Condition(family, { byteOffset: 28 }).notify()
    letMessagesGo()
  }
  // Whatever waits is notified; a closed queue is opened again, which no program can.
  const letMessagesGo = () => {
    const queue = make.queue()
    Atomics.and(new Int32Array(messages), 2 + TAIL, ~1)
    while (queue.tryTake() !== undefined);
    queue.tryPut(1)
  }

  const run = async () => {
    for (let n = 0; n < calls; n++) {
      const { label, part, fn } = pick(callees)
      const own = /^([A-Z]\w*)\./.exec(label)
      const receivers = own && random() < 0.6 ? Object.keys(make).map(name => make[name]()).concat(tokens).filter(it => it instanceof api[own[1]]) : []
      if (/^(locks|LockManager)\./.test(label) && random() < 0.6) receivers.push(api.locks)
      const receiver = receivers.length > 0 ? pick(receivers) : pick(values)()
      const args = Array.from({ length: below(6) }, () => pick(values)())
      // A thread that may block does so for a moment only.
      if (blocks) {
        if (label === 'wait') args[3] = 1
        // Its options are the first, second or third argument.
        else if (/\.(wait|waitFor|lock\w*|acquire|hold|put|take)$|Sync$/.test(label)) for (const place of [0, 1, 2]) args[place] = tokens.includes(args[place]) ? args[place] : place === 1 && fn.length > 2 ? ignore : { timeout: 1 }
      }
      try {
        keep(label, part === 'new' ? Reflect.construct(fn, args, random() < 0.9 ? fn : pick([Object, Array, pick(classes).Class])) : Reflect.apply(fn, receiver, args))
      } catch (error) {
        judge(`${label} (${part})`, error)
      }
      if (n % 20 === 19) letGo()
      if (n % 200 === 199) await sleep(0)
    }
    for (let n = 0; n < 5 || (n < 1000 && names().length > 0); n++) {
      letGo()
      await sleep(2)
    }
    for (const name of names()) wrong.push(`the name ${name} is held`)
    for (const end of [0, 1, messages.byteLength / 4 - 2, messages.byteLength / 4 - 1]) if (new Int32Array(messages)[end] !== 0) wrong.push('bytes beside a queue were written')
    words.forEach((word, at) => { if (word !== value) wrong.push(`word ${at} was written: ${word}`) })
    return { wrong: wrong.slice(0, 20), callees: callees.length, promises: promises.length }
  }
  return run()
}

for (const thread of ['main', 'a worker']) {
  test(`whatever everything is called with in ${thread}, it ends with a value or an error that says something`, { timeout: 60000 }, async t => {
    const data = { seed: SEED, calls: CALLS, value: VALUE, blocks: thread !== 'main', hasBigInt64: HAS_BIGINT64, TAIL }
    const result = thread === 'main' ? await fuzz({ api, data, randomFrom, require, sleep }) : await startWorker(t, fuzz, data).done()
    console.log(`# ${result.callees} functions, ${result.promises} promises`)
    assert.deepStrictEqual(result.wrong, [])
    assert(result.callees > 40)
  })
}
