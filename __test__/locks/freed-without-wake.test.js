'use strict'
// subjects: none

// A word in the package's queue that becomes free without a wake: no waiter sleeps for ever.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const skip = require('../fixtures/without-counters')

const root = path.join(__dirname, '..', '..')

/** Runs source text in a process of its own; it calls `say` with what is to be compared. */
function run (t, entry, source) {
  return runForJSON(t, ['-e', `
    const entry = ${JSON.stringify(path.join(root, entry))}
    const { Worker } = require('worker_threads')
    const vm = require('vm')
    const say = (value) => { console.log(JSON.stringify(value)); process.exit() }
    const sleep = (milliseconds) => new Promise(resolve => { setTimeout(resolve, milliseconds) })
    const head = 'const { parentPort, workerData: data } = require("worker_threads"); ' +
      'const told = () => parentPort.postMessage(1); '
    const worker = (source, data) => new Worker(head + source, { eval: true, workerData: data })
    const message = (worker) => new Promise((resolve, reject) => { worker.on('message', resolve).on('error', reject) })
    const sab = new SharedArrayBuffer(4)
    const word = new Int32Array(sab)
    const making = 'const lock = data.lock = new (require(data.entry).AsyncLock)(data.sab); '
    const inWorker = (source) => message(worker(making + source, { entry, sab }))
    ${source}`])
}

// ——— code that locks the bare word ———

const waiters = {
  'a worker in lock()': 'inWorker("lock.lock(); told()")',
  'a worker in lockAsync()': 'inWorker("lock.lockAsync().then(told)")',
  'main in lockAsync()': 'lock.lockAsync()'
}

for (const entry of ['index.js', 'keep-alive', 'force']) {
  for (const name of Object.keys(waiters)) {
    test(`${entry}: code that frees the bare word wakes ${name}`, async t => {
      const woken = await run(t, entry, `
        const api = require(entry)
        Atomics.store(word, 0, 1)
        const lock = new api.AsyncLock(sab)
        ;(async () => {
          const woken = ${waiters[name]}
          while (api.waiterCount(word, 0) === 0) await sleep(1)
          // As long as the word is locked, no claim is served.
          const early = await Promise.race([woken.then(() => 'early'), sleep(200)])
          Atomics.store(word, 0, 0)
          Atomics.notify(word, 0, 1)
          await woken
          say(early === undefined)
        })()`)
      assert.strictEqual(woken, true)
    })
  }
}

test('code that frees and takes the bare word again and again keeps no worker out', { timeout: 60000 }, async t => {
  const got = await run(t, 'index.js', `
    const api = require(entry)
    Atomics.store(word, 0, 1)
    const woken = inWorker("lock.lock(); lock.unlock(); told()")
    let done = false
    woken.then(() => { done = true })
    ;(async () => {
      while (!done) {
        Atomics.store(word, 0, 0)
        Atomics.notify(word, 0, 1)
        await sleep(2)
        while (Atomics.compareExchange(word, 0, 0, 1) !== 0) await sleep(1)
        await sleep(1)
      }
      say('got it')
    })()`)
  assert.strictEqual(got, 'got it')
})

// ——— a time limit of vm between freeing a word and the look at its counter ———

// Atomics.store is replaced before the package is loaded. When it is to free the word, it lets another thread line up,
// frees the word, and then takes until the time limit interrupts it. Gives what `source` says; on a slow machine the
// limit may have to be longer.
async function runInterrupted (t, source) {
  for (let limit = 1000; ; limit *= 4) {
    const seen = await run(t, 'force', interrupted(limit) + source)
    if (seen !== 'nothing was freed') return seen
  }
}

const interrupted = limit => `
  const { store } = Atomics
  const go = new Int32Array(new SharedArrayBuffer(12)) // whether to wait, whether a thread waits, how many workers run
  let interrupts = false
  let freed = false
  Atomics.store = (array, index, value) => {
    if (!interrupts || array.buffer !== sab) return store(array, index, value)
    interrupts = false
    store(go, 0, 1)
    while (Atomics.load(go, 1) === 0);
    freed = true
    store(array, index, value)
    for (;;);
  }
  const api = require(entry)
  // Sees when a thread waits. Main must not ask, for that would be an operation of its own on the queue.
  const run = 'const api = require(data.entry); Atomics.add(data.go, 2, 1); '
  const looking = 'while (api.waiterCount(new Int32Array(data.sab), 0) === 0); Atomics.store(data.go, 1, 1)'
  worker(run + looking, { entry, sab, go })
  const interrupt = (unlock) => {
    while (Atomics.load(go, 2) < 2);
    interrupts = true
    global.unlock = unlock
    try {
      vm.runInThisContext('unlock()', { timeout: ${limit} })
    } catch (error) {
      if (!freed) say('nothing was freed')
      return error.message
    }
  }
  /** A worker that waits when it is time to. */
  const waiting = 'while (Atomics.load(data.go, 0) === 0); '
  const waiter = (source) => message(worker(run + waiting + source + '; told()', { entry, sab, go }))`

/** On a busy machine the third limit, 16 s, may be the first that is long enough. */
const options = { skip, timeout: 120000 }

const locks = {
  'AsyncLock.lock()': ['new api.AsyncLock(sab).tryLock()', 'new api.AsyncLock(data.sab).lock()'],
  'RwLock.lock()': ['new api.RwLock(sab).tryLock()', 'new api.RwLock(data.sab).lock()'],
  'RwLock.lockShared()': ['new api.RwLock(sab).tryLock()', 'new api.RwLock(data.sab).lockShared()']
}

for (const name of Object.keys(locks)) {
  const [take, wait] = locks[name]
  test(`a time limit that interrupts an unlock() leaves no thread in ${name} for ever`, options, async t => {
    const seen = await runInterrupted(t, `
      const token = ${take}
      const woken = waiter('${wait}')
      const ended = interrupt(() => token.unlock())
      woken.then(() => say(ended))`)
    assert.ok(/timed out/.test(seen), seen)
  })
}

test('a time limit that interrupts an unlock() leaves no thread in Atomics.wait for ever', options, async t => {
  const seen = await runInterrupted(t, `
    const token = new api.AsyncLock(sab).tryLock()
    const woken = waiter('Atomics.wait(new Int32Array(data.sab), 0, 1)')
    const ended = interrupt(() => token.unlock())
    api.waiterCount(word, 0)
    woken.then(() => say(ended))`)
  assert.ok(/timed out/.test(seen), seen)
})
