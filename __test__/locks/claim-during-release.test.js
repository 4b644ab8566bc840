'use strict'
// subjects: none

// A thread that releases something looks at the counter of waiters twice: before it changes the word and after. In
// between, here, a claim comes. (The service would find the word free within 50 ms; a claim must not have to wait for
// that.)

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const { median, onAQuietMachine } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')
const skip = require('../fixtures/without-counters')

const entry = (name) => JSON.stringify(path.join(__dirname, '..', '..', name))

/** Has `inject` called before a function of Atomics that changes the word. The package keeps those that it finds. */
const IN_ATOMICS = `
  for (const name of ['store', 'sub', 'add']) {
    const original = Atomics[name]
    Atomics[name] = (...args) => {
      inject()
      return original(...args)
    }
  }`
/** The same before the plain write of the short way: in its text, when that is loaded. */
const IN_TEXT = `
  const fs = require('fs')
  const { readFileSync } = fs
  global.inject = inject
  fs.readFileSync = (file, ...rest) => {
    const text = readFileSync(file, ...rest)
    return /entries\\.js$/.test(file) ? text.replace('if (isShared) array[0] = UNLOCKED', 'inject(); $&') : text
  }`

const releases = {
  'an AsyncLock by the short way': {
    take: 'lock.tryLock()',
    claim: 'lock.lock().unlock()',
    make: 'new api.AsyncLock(sab)',
    from: 'pure',
    prepare: IN_TEXT
  },
  'an AsyncLock': { take: 'lock.tryLock()', claim: 'lock.lock().unlock()', make: 'new api.AsyncLock(sab)' },
  'a writer': { take: 'lock.tryLock()', claim: 'lock.lock().unlock()', make: 'new api.RwLock(sab)' },
  'a reader': { take: 'lock.tryLockShared()', claim: 'lock.lock().unlock()', make: 'new api.RwLock(sab)' }
}

for (const name of Object.keys(releases)) {
  const { take, claim, make, from = 'force', prepare = IN_ATOMICS } = releases[name]
  const measure = t => runForJSON(t, ['-e', `
      const { Worker } = require('worker_threads')
      let before
      const inject = () => {
        const act = before
        before = undefined
        if (act !== undefined) act()
      }
      ${prepare}
      const api = require(${entry(from)})
      const sab = new SharedArrayBuffer(4)
      const word = new Int32Array(sab)
      const flags = new Int32Array(new SharedArrayBuffer(8))
      const lock = ${make}
      const worker = new Worker(\`
        const { workerData: { sab, flags } } = require('worker_threads')
        const api = require(${entry(from).replace(/\\/g, '\\\\')})
        const lock = ${make}
        for (let n = 1; n <= 20; n++) {
          Atomics.wait(flags, 0, n - 1)
          ${claim}
          flags[1] = n
          Atomics.notify(flags, 1)
        }\`, { eval: true, workerData: { sab, flags } })
      worker.on('online', () => {
        const latencies = []
        for (let n = 1; n <= 20; n++) {
          const token = ${take}
          let released
          before = () => {
            Atomics.exchange(flags, 0, n)
            Atomics.notify(flags, 0)
            while (api.waiterCount(word, 0) === 0);
            released = process.hrtime()
          }
          token.unlock()
          while (Atomics.load(flags, 1) !== n);
          const [seconds, nanoseconds] = process.hrtime(released)
          latencies.push(seconds * 1e3 + nanoseconds / 1e6)
        }
        console.log(JSON.stringify(latencies))
      })`])
  test(`${name}: a claim between the first look and the release is served at once`, { skip, timeout: 60000 }, t =>
    onAQuietMachine(async () => {
      const latencies = await measure(t)
      assert(median(latencies) < slowness * 10, `served after ${latencies} ms`)
    }))
}

test('a plain waiter of the host is notified of a release although the counter of waiters is not 0', async t => {
  // A promise at the word raises the counter.
  const woken = await runForJSON(t, ['-e', `
    const { Worker } = require('worker_threads')
    const api = require(${entry('pure')})
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    api.unref(api.waitAsync(lock.i32a, 0, 1).value)
    const worker = new Worker(\`
      const { parentPort, workerData } = require('worker_threads')
      parentPort.postMessage('begins')
      parentPort.postMessage(Atomics.wait(workerData, 0, 1, 15000))\`, { eval: true, workerData: lock.i32a })
    worker.on('message', (message) => {
      if (message === 'begins') setTimeout(() => token.unlock(), 300)
      else console.log(JSON.stringify(message))
    })`])
  // If it came late, it did not wait at all.
  assert(woken === 'ok' || woken === 'not-equal', woken)
})
