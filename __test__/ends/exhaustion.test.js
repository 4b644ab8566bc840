'use strict'
// subjects: none
// alone: it starts hundreds of threads
// timeout: 300

// A system that has no more of something: file descriptors, memory of a worker, and threads enough for everybody. Each
// ends in working or in a clear error.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const { MAJOR, until, words } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')
const { AsyncLock, RwLock, notify, waiterCount } = require('../../pure')

const force = JSON.stringify(path.join(__dirname, '..', '..', 'force'))
const POSIX = process.platform !== 'win32'

test(
  'without file descriptors a wait works that needs none, and one with a timeout works or says why it cannot',
  { skip: POSIX ? undefined : 'their number is not limited here' },
  async t => {
    const result = await runForJSON(
      t,
      [
        '-e',
        `
    const fs = require('fs')
    const api = require(${force})
    const array = new Int32Array(new SharedArrayBuffer(16))
    // All modules, and the output.
    for (const name of ['AsyncLock', 'Semaphore', 'Condition']) new api[name](array.buffer)
    console.log('')
    const taken = []
    try {
      for (;;) taken.push(fs.openSync('/dev/null', 'r'))
    } catch (error) {
      if (error.code !== 'EMFILE') throw error
    }
    const outcome = (call) => { try { return call() } catch (error) { return error.message } }
    const untimed = Atomics.waitAsync(array, 0, 0)
    const timed = outcome(() => Atomics.waitAsync(array, 1, 0, 20))
    const lock = new api.AsyncLock(array.buffer, { byteOffset: 8 })
    const token = lock.tryLock()
    const claim = lock.lockAsync()
    const counts = [0, 1].map(index => api.waiterCount(array, index))
    const woken = Atomics.notify(array, 0)
    for (const descriptor of taken) fs.closeSync(descriptor)
    token.unlock()
    const settle = (outcome) => typeof outcome === 'string' ? outcome : outcome.value
    const results = [untimed.value, claim.then(token => token.unlock()), settle(timed)]
    Promise.all(results).then(async ([ok, unlocked, timed]) => {
      const again = outcome(() => Atomics.waitAsync(array, 1, 0, 20))
      console.log(JSON.stringify({ ok, unlocked, timed, counts, woken, again: await settle(again) }))
    })`
      ],
      {}
    )
    const { ok, unlocked, timed, counts, woken, again } = result
    assert.deepStrictEqual([ok, unlocked, woken, counts[0]], ['ok', true, 1, 1])
    const isRefused = /the timer could not be started/.test(timed)
    assert(isRefused || timed === 'timed-out', timed)
    assert.strictEqual(counts[1], isRefused ? 0 : 1)
    assert(again === 'timed-out' || isRefused, again)
  }
)

const NO_LIMITS = MAJOR < 14 ? 'this Node has no resourceLimits that end a worker alone' : undefined

test(
  'a worker whose memory is used up while it holds locks hands them on',
  { skip: NO_LIMITS, timeout: 120000 },
  async t => {
    const { buffer } = words(4)
    const [lock, rw] = [new AsyncLock(buffer), new RwLock(buffer, { byteOffset: 4 })]
    const worker = new Worker(
      `
    const { workerData } = require('worker_threads')
    const { AsyncLock, RwLock } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'pure'))})
    const tokens = [new AsyncLock(workerData).tryLock(), new RwLock(workerData, { byteOffset: 4 }).tryLock()]
    const all = []
    for (;;) all.push(new Array(1000).fill(tokens.length))`,
      { eval: true, workerData: buffer, resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 } }
    )
    t.after(() => worker.terminate())
    const failure = new Promise(resolve => worker.on('error', resolve))
    await until(() => lock.locked && rw.locked, 'the worker holds the locks')
    const tokens = await Promise.all([lock.lockAsync({ timeout: 60000 }), rw.lockAsync({ timeout: 60000 })])
    assert.deepStrictEqual(
      tokens.map(token => token.ownerDied),
      [true, true]
    )
    assert.strictEqual((await failure).code, 'ERR_WORKER_OUT_OF_MEMORY')
    for (const token of tokens) token.unlock()
  }
)

const THREADS = size(1000, 64)

test(`${THREADS} workers wait and lock, and end in every way`, { timeout: 280000 }, async t => {
  const array = words(4)
  const lock = new AsyncLock(array.buffer, { byteOffset: 8 })
  const before = POSIX && fs.existsSync('/proc/self/task') ? fs.readdirSync('/proc/self/task').length : undefined
  const workers = []
  const exits = []
  t.after(() => Promise.all(workers.map(worker => worker.terminate())))
  for (let n = 0; n < THREADS; n++) {
    // Ways in which it holds the lock at its end: the last two.
    const way = ['return', 'throw', 'exit', 'block'][n % 4]
    const worker = new Worker(`
      const { workerData: array } = require('worker_threads')
      const { AsyncLock, wait } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'pure'))})
      wait(array, 0, 0)
      const lock = new AsyncLock(array.buffer, { byteOffset: 8 })
      const token = lock.lock()
      array[1]++
      if (token.ownerDied) array[3]++
      if ('${way}' === 'exit') process.exit()
      if ('${way}' === 'block') wait(array, 0, 1)
      token.unlock()
      if ('${way}' === 'throw') throw new Error('on purpose')`, { eval: true, workerData: array })
    workers.push(worker)
    exits.push(new Promise((resolve, reject) => {
      worker.on('error', error => { if (error.message !== 'on purpose') reject(error) })
      worker.on('exit', resolve)
    }))
    // Not all at once: booting takes a processor.
    if (n % 16 === 15) await until(() => waiterCount(array, 0) >= n - 15, 'they have begun')
  }
  await until(() => waiterCount(array, 0) === THREADS, 'all wait')
  array[0] = 1
  assert.strictEqual(notify(array, 0), THREADS)
  // One that blocks with the lock is the only one that waits for the first word: it is told of, and ended.
  const ended = new Set()
  while (array[1] < THREADS || ended.size < THREADS / 4) {
    await until(
      () => waiterCount(array, 0) > 0 || array[1] === THREADS,
      'one holds the lock and blocks, or all have had it'
    )
    if (waiterCount(array, 0) === 0) continue
    const { holder: threadId } = lock
    const holder = workers.find(worker => worker.threadId === threadId)
    assert(holder !== undefined && workers.indexOf(holder) % 4 === 3, `thread ${threadId} holds the lock`)
    ended.add(holder)
    await holder.terminate()
  }
  await Promise.all(exits)
  assert.strictEqual(array[1], THREADS)
  // Each death with the lock was told to the next holder: the last of all is this one.
  array[3] += Number(lock.tryLock().ownerDied)
  assert.strictEqual(array[3], THREADS / 2)
  lock.unlock()
  if (before !== undefined)
    await until(() => fs.readdirSync('/proc/self/task').length <= before + 2, 'their threads have ended')
})
