'use strict'

// Random arguments and receivers, of two realms, for all exports: found by reflection, so that what is new is called,
// too. Each call ends, with a value or with an error that says something; no byte outside of what it was given is
// written; and nothing of it is left.
//
// FUZZ_SEED=N repeats a run, FUZZ_CALLS=N makes a longer one.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { HAS_BIGINT64, randomFrom, sleep, startWorker } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')
const { TAIL } = require('../../../lib/queue/layout')

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
  const fail = () => { throw thrown }
  const ignore = () => {}

  // ——— what is called ———

  const callees = []
  const seen = new Set()
  const describe = (name, object, isClass) => {
    for (const key of Reflect.ownKeys(object)) {
      const property = Object.getOwnPropertyDescriptor(object, key)
      const label = `${name}.${String(key)}`
      if (key === 'constructor' || (isClass && key === 'prototype')) continue
      for (const part of ['value', 'get', 'set']) {
        const fn = property[part]
        if (typeof fn !== 'function' || seen.has(fn)) continue
        seen.add(fn)
        callees.push({ label, part, fn })
      }
    }
  }
  const classes = []
  for (const name of Object.keys(api)) {
    const it = api[name]
    if (typeof it === 'object' && it !== null) {
      const prototype = Object.getPrototypeOf(it)
      describe(name, prototype === Object.prototype ? it : prototype)
    }
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
  const foreign = theirs(`new Int32Array(new SharedArrayBuffer(64)).fill(${value})`)
  const arrays = [
    words, new Int32Array(8), new Uint8Array(sab), new Float64Array(2), new Int32Array(sab, 8, 2), foreign
  ]
  if (hasBigInt64) {
    const wide = new BigInt64Array(new SharedArrayBuffer(64)).fill(BigInt(value))
    arrays.push(wide, new BigUint64Array(sab))
  }
  words.fill(value)
  const detached = new Int32Array(4)
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(detached.buffer, [detached.buffer])
  for (const port of [port1, port2]) port.close()
  arrays.push(detached)
  const buffers = [sab, family, new ArrayBuffer(8), new SharedArrayBuffer(0), theirs('new SharedArrayBuffer(16)')]
  if (SharedArrayBuffer.prototype.grow !== undefined) buffers.push(new SharedArrayBuffer(16, { maxByteLength: 64 }))
  const throwing = { valueOf: fail, toString: fail }
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  }
  const hostile = () => new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail })
  const signal = () => {
    const listeners = new Set()
    const add = (_, listener) => { listeners.add(listener) }
    const signal = { aborted: below(4) === 0, reason: thrown, addEventListener: add }
    setImmediate(() => {
      signal.aborted = true
      for (const listener of listeners) listener()
    })
    return signal
  }
  const cancelled = timeout => api.waitAsync(words, below(words.length), value, timeout, { signal: signal() })
  callees.push({ label: 'waitAsync that is cancelled', part: 'value', fn: cancelled })
  const make = {
    lock: () => new api.AsyncLock(family, { byteOffset: 4 * below(4) }),
    rw: () => new api.RwLock(family, { byteOffset: 16 + 4 * below(2) }),
    semaphore: () => new api.Semaphore(family, { byteOffset: 24 }),
    limit: () => new api.Semaphore(family, { byteOffset: 40, permits: 1 + below(3) }),
    condition: () => new api.Condition(family, { byteOffset: 28 }),
    barrier: () => new api.Barrier(family, { byteOffset: 32, parties: 1 + below(2) }),
    latch: () => new api.Latch(family, { byteOffset: 36, count: below(3) }),
    queue: (format = pick(['clone', 'json'])) =>
      new api.Queue(messages, { byteOffset: 8, capacity: 2, messageSize: 12, format })
  }
  const tokens = []
  const makers = Object.keys(make).map(name => () => make[name]())
  /** Each with its name, and the wrong or right values of it. */
  const options = {
    timeout: [0, 1, 2, NaN, '1', -1, 1e300, null],
    byteOffset: [0, 4, 8, 3, -4, 256, 1.5, '4', null],
    parties: [0, 1, 2, 3],
    count: [-1, 0, 1, 2],
    permits: [0, 1, 2, 3],
    format: ['clone', 'json', 'x', null],
    detectReentry: [true, false, 1],
    steal: [0, 1],
    retry: ['first', 'last', 'x'],
    discard: [true, 1],
    unknown: [1]
  }
  const sizes = () => ({ capacity: pick([0, 1, 2, 3, 2 ** 28, 2 ** 29]), messageSize: pick([-1, 0, 12, 13, 2 ** 28]) })
  const strange = () => Object.defineProperty({}, 'timeout', { get: fail, enumerable: true })
  const numbers = [-1, 0.5, NaN, -0, Infinity, -Infinity, 2 ** 31, 2 ** 53]
  const callbacks = [ignore, fail, async () => fail(), async () => 1, () => new Promise(ignore)]
  const constants = [undefined, undefined, null, '', '0', 'x', true, throwing, theirs('this'), ...numbers, ...callbacks]
  const { prototype } = api.UnlockToken
  const values = [
    ...constants.map(value => () => value),
    ...makers,
    ...makers.map(maker => () => Object.create(maker())),
    ...[arrays, arrays, arrays, buffers, buffers, buffers].map(list => () => pick(list)),
    hostile,
    revoked,
    sizes,
    strange,
    ...Object.keys(options).map(key => () => ({ [key]: pick(options[key]) })),
    ...['({})', '[]', '(() => 1)'].map(source => () => theirs(source)),
    () => below(20),
    () => Symbol('s'),
    () => [],
    () => [1],
    () => ({}),
    () => ({ valueOf: () => below(8) }),
    () => class {},
    () => new Date(),
    () => new Map(),
    () => Promise.resolve(),
    () => Object.create(null),
    () => Object.freeze({}),
    () => ({ signal: signal(), timeout: 1 }),
    () => ({ signal: signal() }),
    () => ({ signal: hostile() }),
    () => ({ target: {}, force: true }),
    () => ({ target: hostile() }),
    () => pick(tokens) || null,
    () => Object.create(prototype),
    () => Object.assign(Object.create(prototype), pick(tokens)),
    () => pick(classes).Class.prototype
  ]
  if (typeof BigInt === 'function') values.push(() => BigInt(below(5)), () => BigInt(2) ** BigInt(70))

  // ——— the calls ———

  const isError = (error) => /^\[object (Error|DOMException)\]$/.test(Object.prototype.toString.call(error))
  const saysWhy = (error) => isError(error) && typeof error.message === 'string' && error.message !== ''
  const judge = (label, error) => {
    if (error !== thrown && !saysWhy(error)) wrong.push(`${label} failed with ${util.inspect(error)}`)
  }
  const promises = []
  const keep = (label, result) => {
    if (result !== null && typeof result === 'object' && result.async === true) result = result.value
    if (result instanceof api.UnlockToken) tokens.push(result)
    if (!util.types || !util.types.isPromise(result)) return
    // A wait that nothing ends must not hold the loop.
    api.unref(result)
    promises.push(result)
    const judged = result.then(value => keep(label, value), error => judge(label, error))
    judged.catch(error => wrong.push(`${label}: ${error.stack}`))
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

  /** Returns the receiver of a method: mostly one of its class. */
  const receiverFor = (label) => {
    const [, own] = /^([A-Z]\w*)\./.exec(label) || []
    const isLikely = () => random() < 0.6
    const things = () => makers.map(maker => maker()).concat(tokens)
    const receivers = own && isLikely() ? things().filter(it => it instanceof api[own]) : []
    if (/^(locks|LockManager)\./.test(label) && isLikely()) receivers.push(api.locks)
    return receivers.length > 0 ? pick(receivers) : pick(values)()
  }

  /** Changes a call's arguments so that it blocks for a moment only. */
  const shorten = (label, fn, args) => {
    if (label === 'wait') args[3] = 1
    // The messages of a queue, which are waited for, would be a list of names.
    if (label === 'LockManager.holdAllAsync' || label === 'LockManager.requestAll') args[0] = pick([[], ['a'], 1])
    if (!/\.(wait|waitFor|lock\w*|acquire|hold|holdAll|idle|put|take|takeMany)$|Sync$/.test(label)) return
    // Its options are the first, second or third argument.
    for (const place of [0, 1, 2]) {
      const isCallback = place === 1 && fn.length > 2
      if (!tokens.includes(args[place])) args[place] = isCallback ? ignore : { timeout: 1 }
    }
  }

  const call = ({ label, part, fn }) => {
    const receiver = receiverFor(label)
    const args = Array.from({ length: below(6) }, () => pick(values)())
    if (blocks) shorten(label, fn, args)
    const target = random() < 0.9 ? fn : pick([Object, Array, pick(classes).Class])
    try {
      keep(label, part === 'new' ? Reflect.construct(fn, args, target) : Reflect.apply(fn, receiver, args))
    } catch (error) {
      judge(`${label} (${part})`, error)
    }
  }

  const run = async () => {
    for (let n = 0; n < calls; n++) {
      call(pick(callees))
      if (n % 20 === 19) letGo()
      if (n % 200 === 199) await sleep(0)
    }
    for (let n = 0; n < 5 || (n < 1000 && names().length > 0); n++) {
      letGo()
      await sleep(2)
    }
    for (const name of names()) wrong.push(`the name ${name} is held`)
    const around = new Int32Array(messages)
    const ends = [0, 1, around.length - 2, around.length - 1]
    if (ends.some(end => around[end] !== 0)) wrong.push('bytes beside a queue were written')
    words.forEach((word, at) => { if (word !== value) wrong.push(`word ${at} was written: ${word}`) })
    return { wrong: wrong.slice(0, 20), callees: callees.length, promises: promises.length }
  }
  return run()
}

for (const thread of ['main', 'a worker']) {
  const name = `whatever everything is called with in ${thread}, it ends with a value or an error that says something`
  test(name, { timeout: 60000 }, async t => {
    const blocks = thread !== 'main'
    const data = { seed: SEED, calls: CALLS, value: VALUE, blocks, hasBigInt64: HAS_BIGINT64, TAIL }
    const result = await (blocks ? startWorker(t, data, fuzz).done() : fuzz({ api, data, randomFrom, require, sleep }))
    console.log(`# ${result.callees} functions, ${result.promises} promises`)
    assert.deepStrictEqual(result.wrong, [])
    assert(result.callees > 40)
  })
}
