'use strict'

// A program that uses nothing of this package, which may be preloaded; groups/bystanders.js starts it. Without an
// argument it ends at once; with one it prints the costs of Node's own things.

const ECHO = require.resolve('./echo')
const WORKERS = { quick: [1, 2], all: [4, 16] }
const FACTOR = { quick: 0.01, all: 1 }

/** Returns the nanoseconds of one of `count` times; the least of some samples, which only disturbances make longer. */
async function leastOf (samples, count, repeat) {
  const { now } = require('./sampling')
  let least = Infinity
  for (let sample = 0; sample < samples; sample++) {
    const begin = now()
    await repeat(count)
    least = Math.min(least, (now() - begin) / count)
  }
  return least
}

async function main (size) {
  const { Worker } = require('worker_threads')
  const { now, sleep } = require('./sampling')
  const workers = []
  const started = []

  async function startWorker () {
    const begin = now()
    const worker = new Worker(ECHO)
    await new Promise(resolve => worker.once('message', resolve))
    started.push(now() - begin)
    workers.push(worker)
  }

  /** Returns the bytes. */
  async function resident () {
    await sleep(100)
    return process.memoryUsage().rss
  }

  const [few, many] = WORKERS[size]
  while (workers.length < few) await startWorker()
  const before = await resident()
  while (workers.length < many) await startWorker()
  const memory = (await resident() - before) / (many - few)

  const { createContext } = require('vm')
  const array = new Int32Array(new SharedArrayBuffer(4))
  const results = {
    'by-worker': Math.min(...started) / 1e6,
    'by-memory': memory / 1e6,
    'by-message': await messages(workers[0], Math.ceil(200 * FACTOR[size])) / 1e3,
    'by-notify': await leastOf(100, Math.ceil(1e4 * FACTOR[size]), (count) => {
      for (let n = 0; n < count; n++) Atomics.notify(array, 0)
    }),
    'by-context': await leastOf(30, 1, () => { createContext({}) }) / 1e6
  }
  console.log(JSON.stringify(results))
  process.exit()
}

/** Sends a message there and back. */
function messages (worker, count) {
  let next
  worker.on('message', () => next())
  return leastOf(20, count, async () => {
    for (let n = 0; n < count; n++) {
      await new Promise((resolve) => {
        next = resolve
        worker.postMessage(n)
      })
    }
  })
}

if (process.argv.length > 2) main(process.argv[2])
