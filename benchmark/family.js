'use strict'

// The cost of the locks and their family: operations that do not wait, and two threads that wait for each other.
//
//   node benchmark/family.js [--markdown]
//
// --markdown prints the table that is in docs/choosing.md.
//
// Each figure is the median of several runs, with the lowest and the highest; figures of one run of this program may be
// compared, on one machine. Threads are where the system puts them: `taskset -c 0 node …` and `taskset -c 0,1 node …` differ.

const os = require('os')
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore } = require('../pure')

const RUNS = 9
const now = () => { const [s, ns] = process.hrtime(); return s * 1e9 + ns }

/** A view of the class on its own memory, some way into it. */
const fresh = (Class, options) => new Class(new SharedArrayBuffer(64), Object.assign({ byteOffset: 32 }, options))

/** Operations that need no waiting, in nanoseconds. */
const immediate = {
  'AsyncLock  tryLock, unlock' () {
    const lock = fresh(AsyncLock)
    return () => { lock.tryLock().unlock() }
  },
  'AsyncLock  executeLocked' () {
    const lock = fresh(AsyncLock)
    const callback = () => {}
    return () => lock.executeLocked(callback)
  },
  'RwLock     tryLockShared, unlock' () {
    const lock = fresh(RwLock)
    return () => { lock.tryLockShared().unlock() }
  },
  'RwLock     tryLock, unlock' () {
    const lock = fresh(RwLock)
    return () => { lock.tryLock().unlock() }
  },
  'RwLock     executeShared' () {
    const lock = fresh(RwLock)
    const callback = () => {}
    return () => lock.executeShared(callback)
  },
  'Semaphore  tryAcquire, release' () {
    const semaphore = fresh(Semaphore)
    semaphore.release()
    return () => { semaphore.tryAcquire(); semaphore.release() }
  },
  'Semaphore  use' () {
    const semaphore = fresh(Semaphore)
    semaphore.release()
    const callback = () => {}
    return () => semaphore.use(1, callback)
  },
  'Condition  notify, no waiters' () {
    const condition = fresh(Condition)
    return () => { condition.notify(1) }
  },
  'Barrier    waitAsync, the last to arrive' () {
    const barrier = fresh(Barrier, { parties: 1 })
    return () => barrier.waitAsync()
  },
  'Latch      countDown' () {
    const latch = fresh(Latch, { count: 0x7fffffff })
    return () => { latch.countDown() }
  },
  'Latch      waitAsync, open' () {
    const latch = fresh(Latch, { count: 0 })
    return () => latch.waitAsync()
  }
}

async function measure (create) {
  const operation = create()
  const figures = []
  for (let run = -1; run < RUNS; run++) {
    let count = 0
    const start = now()
    while (now() - start < 20e6) {
      for (let n = 0; n < 500; n++) {
        const promise = operation()
        if (promise !== undefined) await promise
      }
      count += 500
    }
    if (run >= 0) figures.push((now() - start) / count)
  }
  return figures
}

/** Two threads that wait for each other, a round there and back. Each gets `{ me, rounds, sab }`. */
const rounds = {
  'AsyncLock and Condition, a turn' ({ me, rounds, sab }) {
    const lock = new AsyncLock(sab)
    const condition = new Condition(sab, { byteOffset: 16 })
    const turn = new Int32Array(sab, 32, 1)
    const token = lock.lock()
    for (let n = 0; n < rounds; n++) {
      condition.waitFor(token, () => turn[0] === me)
      turn[0] = 1 - me
      condition.notify(1)
    }
    token.unlock()
  },
  'two Semaphores, a signal' ({ me, rounds, sab }) {
    const mine = new Semaphore(sab, { byteOffset: 16 * me })
    const other = new Semaphore(sab, { byteOffset: 16 * (1 - me) })
    for (let n = 0; n < rounds; n++) {
      if (me === 1) mine.acquire()
      other.release()
      if (me === 0) mine.acquire()
    }
  },
  'Barrier, one meeting' ({ rounds, sab }) {
    const barrier = new Barrier(sab, { parties: 2 })
    for (let n = 0; n < rounds; n++) barrier.wait()
  }
}

async function race (name) {
  const sab = new SharedArrayBuffer(64)
  const threads = [0, 1].map(me => new Worker(__filename, { workerData: { name, me, sab } }))
  const answers = () => Promise.all(threads.map(thread => new Promise(resolve => thread.once('message', resolve))))
  await answers()
  const figures = []
  for (let run = -1; run < RUNS; run++) {
    const done = answers()
    const count = 5000
    for (const thread of threads) thread.postMessage(count)
    const took = Math.max(...await done) / count
    if (run >= 0) figures.push(took)
  }
  for (const thread of threads) thread.postMessage(0)
  return figures
}

const statistics = (figures) => {
  const sorted = figures.slice().sort((a, b) => a - b)
  return { low: sorted[0], median: sorted[sorted.length >> 1], high: sorted[sorted.length - 1] }
}

/** How figures are printed: in columns, or as a Markdown table. */
const forms = {
  columns: {
    title: (text) => console.log(`\n${text}`),
    row (name, figures, unit, digits) {
      const { low, median, high } = statistics(figures)
      console.log(`${name.padEnd(44)}${median.toFixed(digits).padStart(8)} ${unit}   ${low.toFixed(digits)} – ${high.toFixed(digits)}`)
    }
  },
  markdown: {
    title: (text) => console.log(`\n| ${text} | median | lowest |\n|---|--:|--:|`),
    row (name, figures, unit, digits) {
      const { low, median } = statistics(figures)
      console.log(`| ${name.replace(/ {2,}/, ': ')} | ${median.toFixed(digits)} ${unit} | ${low.toFixed(digits)} ${unit} |`)
    }
  }
}

async function main () {
  const { title, row } = forms[process.argv.includes('--markdown') ? 'markdown' : 'columns']
  console.log(`Node ${process.versions.node}, ${os.cpus().length} cores, load ${os.loadavg()[0].toFixed(1)}; ${RUNS} runs`)
  title('without waiting')
  for (const name of Object.keys(immediate)) row(name, await measure(immediate[name]), 'ns', 0)
  title('two blocking threads, there and back')
  for (const name of Object.keys(rounds)) row(name, (await race(name)).map(ns => ns / 1e3), 'µs', 1)
}

function work () {
  const { name, me, sab } = workerData
  parentPort.on('message', (count) => {
    if (count === 0) return parentPort.close()
    const start = now()
    rounds[name]({ me, rounds: count, sab })
    parentPort.postMessage(now() - start)
  })
  parentPort.postMessage(0)
}

if (isMainThread) main()
else work()
