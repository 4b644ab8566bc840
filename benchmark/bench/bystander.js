'use strict'

// A program that uses nothing of this package, which may have been preloaded; groups/bystanders.js starts it. Without an argument it ends at
// once; with one it prints what Node's own things cost it.

const ECHO = require.resolve('./echo')
const WORKERS = { quick: [1, 2], all: [4, 16] }
const FACTOR = { quick: 0.01, all: 1 }

/** Milliseconds. */
const now = () => {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Of samples that only disturbances make longer. */
const least = numbers => Math.min(...numbers)

async function main (size) {
  const { Worker } = require('worker_threads')
  const workers = []
  const started = []

  async function startWorker () {
    const begin = now()
    const worker = new Worker(ECHO)
    await new Promise(resolve => worker.once('message', resolve))
    started.push(now() - begin)
    workers.push(worker)
  }

  /** Bytes. */
  async function resident () {
    await sleep(100)
    return process.memoryUsage().rss
  }

  const [few, many] = WORKERS[size]
  while (workers.length < few) await startWorker()
  const before = await resident()
  while (workers.length < many) await startWorker()
  const memory = (await resident() - before) / (many - few)

  const results = {
    'by-worker': least(started),
    'by-memory': memory / 1e6,
    'by-message': await messages(workers[0], FACTOR[size]) * 1e3,
    'by-notify': notifications(FACTOR[size]) * 1e6,
    'by-context': contexts()
  }
  console.log(JSON.stringify(results))
  process.exit()
}

/** A message there and back. */
async function messages (worker, factor) {
  let next
  worker.on('message', () => next())
  const samples = []
  for (let sample = 0; sample < 20; sample++) {
    const count = Math.ceil(200 * factor)
    const begin = now()
    for (let n = 0; n < count; n++) {
      await new Promise((resolve) => {
        next = resolve
        worker.postMessage(n)
      })
    }
    samples.push((now() - begin) / count)
  }
  return least(samples)
}

function notifications (factor) {
  const array = new Int32Array(new SharedArrayBuffer(4))
  const samples = []
  for (let sample = 0; sample < 100; sample++) {
    const count = Math.ceil(1e4 * factor)
    const begin = now()
    for (let n = 0; n < count; n++) Atomics.notify(array, 0)
    samples.push((now() - begin) / count)
  }
  return least(samples)
}

function contexts () {
  const vm = require('vm')
  const samples = []
  for (let n = 0; n < 30; n++) {
    const begin = now()
    vm.createContext({})
    samples.push(now() - begin)
  }
  return least(samples)
}

if (process.argv.length > 2) main(process.argv[2])
