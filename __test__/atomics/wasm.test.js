'use strict'
// subjects: none
// oldest: none (there the host has no queue for promises, which memory.atomic.notify would reach)

// Waits on a WebAssembly memory: in the host's queue where the host has a waitAsync, since memory.atomic.notify finds
// no others; and they hold the event loop only if they were made by the exported waitAsync.

const assert = require('assert')
const path = require('path')
const vm = require('vm')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { converted, outcomeOf } = require('../fixtures/odd-calls')
const { logs, runForJSON } = require('../fixtures/run-node')
const wasm = require('../fixtures/wasm-threads')

const host = { wait: Atomics.wait, notify: Atomics.notify, waitAsync: Atomics.waitAsync }
const pure = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const HOST_HAS_WAIT_ASYNC = MAJOR >= 16
const NO_HOST_WAIT_ASYNC = !HOST_HAS_WAIT_ASYNC && 'this Node has no waitAsync'
const entryPath = (entry) => path.join(__dirname, '..', '..', entry)
const file = (name) => JSON.stringify(path.join(__dirname, name))
const installed = {}
pure.install({ target: installed, force: true })

const here = { skip: NO_HOST_WAIT_ASYNC }

/** The exported and the installed functions: both are on the package's own queue elsewhere. */
for (const [name, functions] of [['exported', pure], ['installed', installed]]) {
  test(`${name}: memory.atomic.notify wakes a waitAsync`, here, async () => {
    const memory = wasm.newMemory()
    const { notify } = wasm.instantiate(memory)
    const words = new Int32Array(memory.buffer)
    const { async, value } = functions.waitAsync(words, 1, 0, 20000)
    assert.deepStrictEqual([async, pure.waiterCount(words, 1)], [true, 0])
    const alive = setInterval(() => {}, 1000)
    assert.strictEqual(notify(4, 9), 1)
    assert.strictEqual(await value, 'ok')
    clearInterval(alive)
  })

  test(`${name}: the rules and errors of waits are the host's`, here, () => {
    const words = new Int32Array(wasm.newMemory().buffer)
    for (const args of [[-1], [1 << 20], [0, 1], [0, 0, 0], ['1', '7'], [0, Symbol()], [0, 0, Symbol()]]) {
      for (const name of ['wait', 'waitAsync']) {
        assert.deepStrictEqual(outcomeOf(functions[name], [words, ...args]), outcomeOf(host[name], [words, ...args]))
      }
    }
    const log = []
    const argument = (name, value) => converted(value, () => { log.push(name) })
    functions.waitAsync(words, argument('index', 0), argument('value', 1), argument('timeout', 0))
    assert.deepStrictEqual(log, ['index', 'value', 'timeout'])
  })
}

test('exported: a signal is refused, and no wait begins; the installed one ignores it', here, async () => {
  const memory = wasm.newMemory()
  const words = new Int32Array(memory.buffer)
  const signal = { aborted: false, addEventListener () { assert.fail('it is not listened to') } }
  for (const value of [0, 1]) {
    assert.throws(() => pure.waitAsync(words, 1, value, 1000, { signal }), {
      name: 'TypeError',
      message:
        "waitAsync: a signal cannot cancel a wait in the host's queue, where waits on a WebAssembly memory are: " +
        'only on others do atomics-waitasync/force and atomics-waitasync/pure take one'
    })
  }
  assert.strictEqual(host.notify(words, 1), 0)
  const waits = [installed.waitAsync(words, 1, 0, 1000, { signal }), pure.waitAsync(words, 1, 0, 1000, {})]
  assert.strictEqual(host.notify(words, 1), 2)
  for (const { value } of waits) assert.strictEqual(await value, 'ok')
})

test('a BigInt64Array, a memory that has grown, and a buffer that grows itself', here, async () => {
  const memory = wasm.newMemory()
  const { notify } = wasm.instantiate(memory)
  const before = new BigInt64Array(memory.buffer)
  memory.grow(1)
  const buffers = [memory.buffer]
  if (typeof memory.toResizableBuffer === 'function') buffers.push(memory.toResizableBuffer())
  const arrays = [before, ...buffers.map(buffer => new BigInt64Array(buffer))]
  const alive = setInterval(() => {}, 1000)
  for (const array of arrays) {
    const { value } = installed.waitAsync(array, 1, BigInt(0))
    assert.strictEqual(notify(8, 9), 1)
    assert.strictEqual(await value, 'ok')
  }
  clearInterval(alive)
})

test('a promise of another realm is of that realm', here, async () => {
  const context = vm.createContext({})
  assert.strictEqual(pure.install({ target: context, force: true }), true)
  const memory = wasm.newMemory()
  const wait = vm.runInContext('(array) => [Atomics.waitAsync(array, 0, 0).value, Promise]', context)
  const [promise, Promise] = wait(new Int32Array(memory.buffer))
  assert.ok(promise instanceof Promise)
  assert.strictEqual(pure.ref(promise), true)
  assert.strictEqual(wasm.instantiate(memory).notify(0, 1), 1)
  assert.strictEqual(await promise, 'ok')
})

test('with /force in all threads, posted memories included: each thread and module wakes each other', here, async t =>
  // Main and worker hand a word back and forth: w waits by Atomics.wait or in WebAssembly, main by waitAsync.
  run(t, [8, true], 'force', async ({ api, log, memory, require, wasm, words }) => {
    const { Worker } = require('worker_threads')
    const { notify } = wasm.instantiate(memory)
    const worker = new Worker(`
      const { workerData: { file, memory, words } } = require('worker_threads')
      const { notify, wait } = require(file).instantiate(memory)
      for (let turn = 1; turn < 9; turn += 2) {
        const posted = turn % 4 === 1 ? words : new Int32Array(memory.buffer)
        while (Atomics.load(posted, 0) !== turn) {
          turn % 3 === 0 ? wait(0, turn - 1, -1n) : Atomics.wait(posted, 0, turn - 1)
        }
        Atomics.store(posted, 0, turn + 1)
        turn % 4 === 1 ? notify(0, 1) : Atomics.notify(posted, 0)
      }`, { eval: true, workerData: { file: wasm.file, memory, words } })
    worker.unref()
    const outcomes = []
    for (let turn = 0; turn < 8; turn += 2) {
      Atomics.store(words, 0, turn + 1)
      if (turn % 4 === 0) notify(0, 1)
      else Atomics.notify(words, 0)
      while (Atomics.load(words, 0) !== turn + 2) {
        const { async, value } = api.waitAsync(words, 0, turn + 1)
        if (async) outcomes.push(await value)
      }
    }
    log.push(words[0], outcomes.every(outcome => outcome === 'ok'))
  }))

test('notify finds the claims of locks before the host\'s waiters', here, async () => {
  const memory = wasm.newMemory()
  const words = new Int32Array(memory.buffer)
  const lock = new pure.AsyncLock(memory.buffer)
  const token = lock.tryLock()
  const claim = lock.lockAsync()
  const { value } = installed.waitAsync(words, 0, pure.AsyncLock.LOCKED)
  assert.deepStrictEqual([pure.waiterCount(words, 0), pure.ref(value)], [1, true])
  assert.strictEqual(pure.notify(words, 0), 2)
  assert.strictEqual(await value, 'ok')
  assert.strictEqual(token.unlock(), true)
  assert.strictEqual((await claim).unlock(), true)
})

test('/force: a lock in such a memory wakes plain waiters on its word, which are in the host\'s queue', here, t =>
  run(t, ['ok'], 'force', ({ api, log, words }) => {
    const lock = new api.AsyncLock(words.buffer)
    const token = lock.tryLock()
    api.waitAsync(lock.i32a, 0, api.AsyncLock.LOCKED, 10000).value.then(outcome => { log.push(outcome) })
    setTimeout(() => { token.unlock() }, 10)
  }))

/** Expects the log of `fn` in a process that preloads an entry: with words in a WebAssembly memory. */
const run = (t, expected, entry, fn) => logs(t, expected, 'index', `(scope) => {
  const wasm = require(${file('../fixtures/wasm-threads.js')})
  const memory = wasm.newMemory()
  Object.assign(scope, { wasm, memory, words: new Int32Array(memory.buffer) })
  ;(${fn})(scope)
}`, { flags: ['-r', entryPath(entry)], data: entryPath(entry) })

for (const entry of ['force', 'keep-alive']) {
  test(`/${entry}: a wait of the global's waitAsync does not hold the event loop`, here, t =>
    run(t, ['end'], entry, ({ log, words }) => {
      Atomics.waitAsync(words, 0, 0)
      Atomics.waitAsync(words, 0, 0, 60000)
      setTimeout(() => { log.push('end') }, 1)
    }))

  test(`/${entry}: after ref it does, until it is settled or unref'd`, here, t =>
    run(t, [true, true, true, true, true, 'timed-out', false], entry, ({ api, log, words }) => {
      const { value } = Atomics.waitAsync(words, 0, 0, 50)
      log.push(api.ref(value), api.ref(value))
      value.then(outcome => { log.push(outcome, api.ref(value)) })
      const other = Atomics.waitAsync(words, 1, 0).value
      log.push(api.unref(other), api.ref(other), api.unref(other))
    }))

  test(`/${entry}: a wait of an exported waitAsync holds it, unless it is unref'd`, here, t =>
    run(t, [true, true, 'timed-out', 'timed-out'], entry, ({ api, data, log, require, words }) => {
      for (const entry of [api, require(data)]) {
        entry.waitAsync(words, 0, 0, 50).value.then(outcome => { log.push(outcome) })
        log.push(entry.unref(entry.waitAsync(words, 0, 0).value))
      }
    }))

  test(`/${entry}: a wait on any other memory holds it, whichever function made it`, here, t =>
    run(t, ['timed-out', 'timed-out'], entry, ({ api, array, log }) => {
      for (const { waitAsync } of [Atomics, api])
        waitAsync(array, 0, 0, 50).value.then(outcome => {
          log.push(outcome)
        })
    }))
}

// A mailbox as Emscripten makes it: by waitAsync where there is one, otherwise by messages.
const MAILBOX = `
  const wasm = require(${file('../fixtures/wasm-threads.js')})
  const { MessageChannel } = require('worker_threads')
  const memory = wasm.newMemory()
  const words = new Int32Array(memory.buffer)
  const { port1, port2 } = new MessageChannel()
  const timer = setTimeout(end, 500, 'no mail')
  const waits = typeof Atomics.waitAsync === 'function'
  if (waits) Atomics.waitAsync(words, 0, 0).value.then(() => { end('mail') })
  else port1.on('message', () => { end('mail') })
  if (waits) wasm.instantiate(memory).notify(0, 1)
  else port2.postMessage('')
  function end (outcome) {
    clearTimeout(timer)
    console.log(JSON.stringify(outcome))
    process.exit()
  }`

const MAIL_OF_HOST = HOST_HAS_WAIT_ASYNC ? 'mail' : 'no mail'
const NO_EMSCRIPTEN = MAJOR < 14 && 'this Node has no threads of WebAssembly that Emscripten uses'
for (const [entry, expected] of [['index', MAIL_OF_HOST], ['force', MAIL_OF_HOST], ['pure', 'mail']]) {
  test(
    `/${entry}: a program that looks whether there is a waitAsync gets ${expected}`,
    { skip: NO_EMSCRIPTEN },
    async t => {
      const flags = HOST_HAS_WAIT_ASYNC ? [] : ['--experimental-wasm-threads']
      assert.strictEqual(await runForJSON(t, [...flags, '-r', entryPath(entry), '-e', MAILBOX]), expected)
    }
  )
}

test('a worker that waits in WebAssembly\'s line can be terminated', here, async () => {
  const memory = wasm.newMemory()
  const worker = new Worker(`
    const { parentPort, workerData } = require('worker_threads')
    const { wait } = require(${file('../../pure/index.js')})
    parentPort.postMessage('waits')
    wait(new Int32Array(workerData.buffer), 0, 0)`, { eval: true, workerData: memory, execArgv: [] })
  await new Promise(resolve => worker.once('message', resolve))
  assert.strictEqual(await worker.terminate(), 1)
})
