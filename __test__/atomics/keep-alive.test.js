'use strict'
// subjects: none
// nodes: >=16 (below, /keep-alive does what the plain entry does)

// /keep-alive: the host's own queue, with pending waits that hold the event loop. Whether a loop is held is seen from
// outside, by a child process that ends or does not.

const assert = require('assert')
const path = require('path')
const vm = require('vm')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { converted, outcomeOf } = require('../fixtures/odd-calls')
const { logs } = require('../fixtures/run-node')
const wasm = require('../fixtures/wasm-threads')

const host = { waitAsync: Atomics.waitAsync }
const api = require('../../keep-alive')

const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)
const ENTRY = path.join(__dirname, '..', '..', 'keep-alive')
const words = (length = 1) => new Int32Array(new SharedArrayBuffer(4 * length))

/**
 * Expects what `fn` logs in a process with the entry; `startNotifier` starts a thread that holds nothing and notifies
 * until it has woken one.
 */
const run = (t, expected, fn, flags) => logs(t, expected, 'keep-alive', `(scope) => {
  const { Worker } = require('worker_threads')
  scope.startNotifier = (index) => {
    const source = 'const { array, index } = require("worker_threads").workerData; ' +
      'while (Atomics.notify(array, index) === 0);'
    new Worker(source, { eval: true, workerData: { array: scope.array, index }, execArgv: [] }).unref()
  }
  ;(${fn})(scope)
}`, { flags })

// The event loop.

test('a wait with a timeout holds the process until it is over', t =>
  run(t, ['timed-out', 'then'], ({ array, log }) => {
    Atomics.waitAsync(array, 0, 0, 50).value.then((value) => { log.push(value, 'then') })
  }))

test('a wait without a timeout holds the process until it is notified', t =>
  run(t, ['ok'], ({ array, log, startNotifier }) => {
    Atomics.waitAsync(array, 0, 0).value.then((value) => { log.push(value) })
    startNotifier(0)
  }))

test('the continuation of a settled wait may wait again', t =>
  run(t, Array(5).fill('timed-out'), async ({ array, log }) => {
    for (let i = 1; i <= 5; i++) log.push(await Atomics.waitAsync(array, 0, 0, 5 * i).value)
  }))

test('a wait that is unref\'d lets the process end', t =>
  run(t, [true], ({ api, array, log }) => {
    const { value } = Atomics.waitAsync(array, 0, 0)
    value.then(() => { log.push('settled') })
    log.push(api.unref(value))
  }))

test('ref undoes unref, and both may be repeated', t =>
  run(t, [true, true, true, true, true, true, 'timed-out', false, false], ({ api: { ref, unref }, array, log }) => {
    const { value } = Atomics.waitAsync(array, 0, 0, 50)
    value.then((outcome) => { log.push(outcome, ref(value), unref(value)) })
    for (const set of [unref, unref, ref, ref, unref, ref]) log.push(set(value))
  }))

test('of many waits, only those that are ref\'d hold the process', t =>
  run(t, ['ok'], ({ api, array, log, startNotifier }) => {
    const waits = Array.from({ length: 1000 }, (_, i) => Atomics.waitAsync(array, i & 15, 0).value)
    waits.forEach((wait, i) => { if (i !== 500) api.unref(wait) })
    waits[500].then((value) => { log.push(value) })
    startNotifier(500 & 15)
  }))

test('a wait that is unref\'d and then settled leaves the count right', t =>
  run(t, ['ok', 'timed-out'], ({ api, array, log }) => {
    const first = Atomics.waitAsync(array, 0, 0).value
    api.unref(first)
    Atomics.notify(array, 0)
    const second = Atomics.waitAsync(array, 0, 0, 50).value
    for (const wait of [first, second]) wait.then((value) => { log.push(value) })
  }))

test('a worker that only waits lives until it is notified', async t => {
  const array = words(2)
  const worker = new Worker(`
    const { workerData: array } = require('worker_threads')
    require(${JSON.stringify(ENTRY)})
    Atomics.waitAsync(array, 0, 0).value.then(() => { Atomics.store(array, 1, 1) })`, { eval: true, workerData: array })
  let ended = false
  const end = new Promise((resolve) => { worker.on('exit', () => { ended = true; resolve() }) })
  while (Atomics.notify(array, 0) === 0) {
    assert.ok(!ended, 'the worker has ended')
    await new Promise(setImmediate)
  }
  await end
  assert.strictEqual(array[1], 1)
})

test('a worker with a pending wait can be terminated', async () => {
  const worker = new Worker(`
    require(${JSON.stringify(ENTRY)})
    Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    require('worker_threads').parentPort.postMessage('waits')`, { eval: true })
  await new Promise((resolve) => { worker.once('message', resolve) })
  assert.strictEqual(await worker.terminate(), 1)
})

test('a timer for each wait that holds the event loop, and none without such waits', {
  skip: (MAJOR < 16 || (MAJOR === 16 && MINOR < 14)) && 'this Node does not list what keeps it alive'
}, t =>
  run(t, [0, 100, 99, 0], ({ api, array, log }) => {
    const count = () => { log.push(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length) }
    count()
    const waits = Array.from({ length: 100 }, () => Atomics.waitAsync(array, 0, 0).value)
    count()
    api.unref(waits[0])
    count()
    Atomics.notify(array, 0)
    Promise.all(waits).then(count)
  }))

// Which queue the waits are in.

test('memory.atomic.notify of WebAssembly wakes a wait', async () => {
  const memory = wasm.newMemory()
  const { value } = Atomics.waitAsync(new Int32Array(memory.buffer), 0, 0)
  assert.strictEqual(wasm.instantiate(memory).notify(0, 9), 1)
  assert.strictEqual(await value, 'ok')
})

test('its promises and blocked threads are in the same line', async () => {
  const array = words(2)
  const worker = new Worker(`
    const { workerData: array } = require('worker_threads')
    while (Atomics.notify(array, 0) === 0);
    Atomics.wait(array, 1, 0)`, { eval: true, workerData: array, execArgv: [] })
  const end = new Promise((resolve) => { worker.on('exit', resolve) })
  assert.strictEqual(await Atomics.waitAsync(array, 0, 0).value, 'ok')
  while (Atomics.notify(array, 1) === 0) await new Promise(setImmediate)
  await end
})

test('the native library is not loaded', t =>
  run(t, [[], 'host'], ({ api, array, log, require }) => {
    Atomics.waitAsync(array, 0, 0, 1)
    log.push(Object.keys(require.cache).filter((file) => file.endsWith('.node')), api.engine)
  }))

// Like the host's.

test('the result and its promise are the host\'s own', async () => {
  const array = words()
  const [theirs, ours] = [host.waitAsync(array, 0, 0), Atomics.waitAsync(array, 0, 0)]
  const shape = (result) => Object.getOwnPropertyDescriptors(Object.assign({}, result, { value: 0 }))
  assert.deepStrictEqual(shape(ours), shape(theirs))
  assert.strictEqual(Object.getPrototypeOf(ours), Object.getPrototypeOf(theirs))
  assert.strictEqual(Object.getPrototypeOf(ours.value), Promise.prototype)
  assert.deepStrictEqual(Reflect.ownKeys(ours.value), [])
  Atomics.notify(array, 0)
  assert.deepStrictEqual(await Promise.all([theirs.value, ours.value]), ['ok', 'ok'])
})

test('a result that is there at once is passed through', () => {
  const array = words()
  assert.deepStrictEqual(Atomics.waitAsync(array, 0, 1), { async: false, value: 'not-equal' })
  assert.deepStrictEqual(Atomics.waitAsync(array, 0, 0, 0), { async: false, value: 'timed-out' })
})

test('errors are the host\'s', () => {
  const wrong = [[], [1], [new Int32Array(1), 0, 0], [words(), 1, 0], [words(), 0, Symbol()], [words(), 0, 0, Symbol()]]
  for (const args of wrong.concat([[new Float64Array(new SharedArrayBuffer(8)), 0, 0]])) {
    const [kind, message] = outcomeOf(host.waitAsync, args)
    assert.deepStrictEqual(outcomeOf(Atomics.waitAsync, args), [kind, message])
  }
})

test('arguments are coerced once, in the host\'s order', () => {
  const log = []
  const argument = (name, value) => converted(value, () => { log.push(name) })
  Atomics.waitAsync(words(), argument('index', 0), argument('value', 1), argument('timeout', 0))
  assert.deepStrictEqual(log, ['index', 'value', 'timeout'])
})

test('its name, length and attributes are those of the host\'s function', () => {
  const shape = fn => [
    fn.name, fn.length, 'prototype' in fn, Object.getPrototypeOf(fn), Object.getOwnPropertyNames(fn).sort()
  ]
  assert.deepStrictEqual(shape(Atomics.waitAsync), shape(host.waitAsync))
  assert.throws(() => new Atomics.waitAsync(words(), 0, 1), TypeError) // eslint-disable-line new-cap
})

test('promises of another realm are held as well', async () => {
  const context = vm.createContext({})
  // The entry has reached it.
  assert.strictEqual(api.install({ target: context }), false)
  const array = words()
  const { promise, theirs } = vm.runInContext(
    '(array) => ({ promise: Atomics.waitAsync(array, 0, 0).value, theirs: Promise })',
    context
  )(array)
  assert.ok(promise instanceof theirs)
  assert.strictEqual(api.unref(promise), true)
  Atomics.notify(array, 0)
  assert.strictEqual(await promise, 'ok')
  assert.strictEqual(api.unref(promise), false)
})

test('code that has replaced Promise.prototype.then is not asked', t =>
  run(t, [0], ({ array, log }) => {
    const { then } = Promise.prototype
    let calls = 0
    // eslint-disable-next-line no-extend-native
    Promise.prototype.then = function (...args) { calls++; return then.apply(this, args) }
    Atomics.waitAsync(array, 0, 0, 1)
    log.push(calls)
  }))

test('a settled promise is not kept', t =>
  run(t, [true], async ({ array, log }) => {
    let collected = 0
    const registry = new global.FinalizationRegistry(() => { collected++ })
    for (let i = 0; i < 1000; i++) {
      const { value } = Atomics.waitAsync(array, 0, 0)
      registry.register(value)
      Atomics.notify(array, 0)
    }
    for (let i = 0; i < 1000 && collected < 900; i++) {
      global.gc()
      await new Promise(setImmediate)
    }
    log.push(collected >= 900)
  }, ['--expose-gc']))

test('uninstall gives the host\'s function back; pending waits still hold, and so does the entry\'s own function', t =>
  run(t, [true, 'host', true, 'timed-out', 'timed-out'], ({ api, array, log }) => {
    const hear = ({ value }) => { value.then((outcome) => { log.push(outcome) }) }
    hear(Atomics.waitAsync(array, 0, 0, 50))
    log.push(api.uninstall(), api.engine, Atomics.waitAsync[Symbol.for('atomics-waitasync')] === undefined)
    hear(api.waitAsync(array, 0, 0, 100))
  }))
