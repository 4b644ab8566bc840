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
const { runForJSON, runNode } = require('../fixtures/run-node')

const host = { waitAsync: Atomics.waitAsync }
const api = require('../../keep-alive')

const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)
const ENTRY = path.join(__dirname, '..', '..', 'keep-alive')
const words = (length = 1) => new Int32Array(new SharedArrayBuffer(4 * length))

/** Runs source text in a process with the entry; `array` is shared memory, `log` what it prints as JSON when it ends. */
function run (t, source, flags = []) {
  return runForJSON(t, [...flags, '-e', `
    const api = require(${JSON.stringify(ENTRY)})
    const { Worker } = require('worker_threads')
    const array = new Int32Array(new SharedArrayBuffer(64))
    const log = []
    process.on('exit', () => { console.log(JSON.stringify(log)) })
    ${source}`])
}

/** Source text: starts a worker, one that does not hold the process, that notifies until it has woken someone. */
const startNotifier = (index) => `
  new Worker('const { workerData: array } = require("worker_threads"); while (Atomics.notify(array, ${index}) === 0);', { eval: true, workerData: array, execArgv: [] }).unref();`

// The event loop.

test('a wait with a timeout holds the process until it is over', async t => {
  assert.deepStrictEqual(await run(t, "Atomics.waitAsync(array, 0, 0, 50).value.then((value) => { log.push(value, 'then') })"), ['timed-out', 'then'])
})

test('a wait without a timeout holds the process until it is notified', async t => {
  const source = `
    Atomics.waitAsync(array, 0, 0).value.then((value) => { log.push(value) })
    ${startNotifier(0)}`
  assert.deepStrictEqual(await run(t, source), ['ok'])
})

test('the continuation of a settled wait may wait again', async t => {
  const source = `
    ;(async () => {
      for (let i = 1; i <= 5; i++) log.push(await Atomics.waitAsync(array, 0, 0, 5 * i).value)
    })()`
  assert.deepStrictEqual(await run(t, source), Array(5).fill('timed-out'))
})

test('a wait that is unref\'d lets the process end', async t => {
  const source = `
    const { value } = Atomics.waitAsync(array, 0, 0)
    value.then(() => { log.push('settled') })
    log.push(api.unref(value))`
  assert.deepStrictEqual(await run(t, source), [true])
})

test('ref undoes unref, and both may be repeated', async t => {
  const source = `
    const { value } = Atomics.waitAsync(array, 0, 0, 50)
    value.then((value) => { log.push(value, api.ref(promise), api.unref(promise)) })
    const promise = value
    log.push(api.unref(value), api.unref(value), api.ref(value), api.ref(value), api.unref(value), api.ref(value))`
  assert.deepStrictEqual(await run(t, source), [true, true, true, true, true, true, 'timed-out', false, false])
})

test('of many waits, only those that are ref\'d hold the process', async t => {
  const source = `
    const waits = Array.from({ length: 1000 }, (_, i) => Atomics.waitAsync(array, i & 15, 0).value)
    waits.forEach((wait, i) => { if (i !== 500) api.unref(wait) })
    waits[500].then((value) => { log.push(value) })
    ${startNotifier(500 & 15)}`
  assert.deepStrictEqual(await run(t, source), ['ok'])
})

test('a wait that is unref\'d and then settled leaves the count right', async t => {
  const source = `
    const first = Atomics.waitAsync(array, 0, 0).value
    api.unref(first)
    Atomics.notify(array, 0)
    const second = Atomics.waitAsync(array, 0, 0, 50).value
    first.then((value) => { log.push(value) })
    second.then((value) => { log.push(value) })`
  assert.deepStrictEqual(await run(t, source), ['ok', 'timed-out'])
})

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
}, async t => {
  const source = `
    const count = () => { log.push(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length) }
    count()
    const waits = Array.from({ length: 100 }, () => Atomics.waitAsync(array, 0, 0).value)
    count()
    api.unref(waits[0])
    count()
    Atomics.notify(array, 0)
    Promise.all(waits).then(count)`
  assert.deepStrictEqual(await run(t, source), [0, 100, 99, 0])
})

// Which queue the waits are in.

// (module (import "" "m" (memory 1 1 shared)) (func (export "notify") (result i32) i32.const 0 i32.const 9 memory.atomic.notify))
const NOTIFYING_MODULE = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic, version
  1, 5, 1, 0x60, 0, 1, 0x7f, // type 0: () -> i32
  2, 8, 1, 0, 1, 0x6d, 2, 3, 1, 1, // import "" "m": memory, shared, 1 to 1 pages
  3, 2, 1, 0, // function 0 of type 0
  7, 10, 1, 6, 0x6e, 0x6f, 0x74, 0x69, 0x66, 0x79, 0, 0, // export "notify"
  10, 12, 1, 10, 0, 0x41, 0, 0x41, 9, 0xfe, 0, 2, 0, 0x0b // its body
])

test('memory.atomic.notify of WebAssembly wakes a wait', async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
  const { exports: { notify } } = new WebAssembly.Instance(new WebAssembly.Module(NOTIFYING_MODULE), { '': { m: memory } })
  const { value } = Atomics.waitAsync(new Int32Array(memory.buffer), 0, 0)
  assert.strictEqual(notify(), 1)
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

test('the native library is not loaded', async t => {
  const source = 'Atomics.waitAsync(array, 0, 0, 1); log.push(Object.keys(require.cache).filter((file) => file.endsWith(".node")), api.engine)'
  assert.deepStrictEqual(await run(t, source), [[], 'host'])
})

// Like the host's.

test('the result and its promise are the host\'s own', async () => {
  const array = words()
  const [theirs, ours] = [host.waitAsync(array, 0, 0), Atomics.waitAsync(array, 0, 0)]
  assert.deepStrictEqual(Object.getOwnPropertyDescriptors(Object.assign({}, ours, { value: 0 })), Object.getOwnPropertyDescriptors(Object.assign({}, theirs, { value: 0 })))
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
  const caught = (fn, args) => {
    try {
      fn(...args)
      return 'nothing'
    } catch (error) {
      return [error.constructor, error.message]
    }
  }
  for (const args of [[], [1], [new Int32Array(1), 0, 0], [words(), 1, 0], [words(), 0, Symbol()], [words(), 0, 0, Symbol()], [new Float64Array(new SharedArrayBuffer(8)), 0, 0]]) {
    assert.deepStrictEqual(caught(Atomics.waitAsync, args), caught(host.waitAsync, args))
  }
})

test('arguments are coerced once, in the host\'s order', () => {
  const log = []
  const argument = (name, value) => ({ valueOf () { log.push(name); return value } })
  Atomics.waitAsync(words(), argument('index', 0), argument('value', 1), argument('timeout', 0))
  assert.deepStrictEqual(log, ['index', 'value', 'timeout'])
})

test('its name, length and attributes are those of the host\'s function', () => {
  const shape = (fn) => [fn.name, fn.length, 'prototype' in fn, Object.getPrototypeOf(fn), Object.getOwnPropertyNames(fn).sort()]
  assert.deepStrictEqual(shape(Atomics.waitAsync), shape(host.waitAsync))
  assert.throws(() => new Atomics.waitAsync(words(), 0, 1), TypeError) // eslint-disable-line new-cap
})

test('promises of another realm are held as well', async () => {
  const context = vm.createContext({})
  // The entry has reached it.
  assert.strictEqual(api.install({ target: context }), false)
  const array = words()
  const { promise, theirs } = vm.runInContext('(array) => ({ promise: Atomics.waitAsync(array, 0, 0).value, theirs: Promise })', context)(array)
  assert.ok(promise instanceof theirs)
  assert.strictEqual(api.unref(promise), true)
  Atomics.notify(array, 0)
  assert.strictEqual(await promise, 'ok')
  assert.strictEqual(api.unref(promise), false)
})

test('code that has replaced Promise.prototype.then is not asked', async t => {
  const source = `
    const { then } = Promise.prototype
    let calls = 0
    Promise.prototype.then = function (...args) { calls++; return then.apply(this, args) }
    const { value } = Atomics.waitAsync(array, 0, 0, 1)
    log.push(calls)`
  assert.deepStrictEqual(await run(t, source), [0])
})

test('a settled promise is not kept', async t => {
  const source = `
    let collected = 0
    const registry = new FinalizationRegistry(() => { collected++ })
    ;(async () => {
      for (let i = 0; i < 1000; i++) {
        const { value } = Atomics.waitAsync(array, 0, 0)
        registry.register(value)
        Atomics.notify(array, 0)
      }
      for (let i = 0; i < 1000 && collected < 900; i++) {
        gc()
        await new Promise(setImmediate)
      }
      log.push(collected >= 900)
    })()`
  assert.deepStrictEqual(await run(t, source, ['--expose-gc']), [true])
})

test('uninstall gives the host\'s function back, and pending waits still hold', async t => {
  const source = `
    const { value } = Atomics.waitAsync(array, 0, 0, 50)
    value.then((value) => { log.push(value) })
    log.push(api.uninstall(), api.engine, Atomics.waitAsync[Symbol.for('atomics-waitasync')] === undefined)`
  assert.deepStrictEqual(await run(t, source), [true, 'host', true, 'timed-out'])
})

test('without an install, the entry\'s own function holds as well', async t => {
  const { code, stdout } = await runNode(t, ['-e', `
    const api = require(${JSON.stringify(ENTRY)})
    api.uninstall()
    api.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50).value.then(console.log)`])
  assert.deepStrictEqual([code, stdout], [0, 'timed-out\n'])
})
