'use strict'

// A process that ends in the midst of everything: threads that block, await and hold, and then process.exit() in the
// main thread or in a worker, an end by itself, or an uncaught error. What is checked is that it ends so, and soon.
//
//   node child.js SEED     the exit code is that of `expected(seed)`

const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const { Atomics, MAJOR, api, randomOf } = require('./subject')

const WAYS = ['exit', 'exit', 'exit at once', 'throw', 'by itself']
const expected = (seed) => {
  const random = randomOf(seed)
  const way = WAYS[Math.floor(random() * WAYS.length)]
  return { way, code: way === 'throw' ? 1 : way === 'by itself' ? 0 : 7, random }
}

/** Behind the words. */
const QUEUE_AT = 32

/** Holds, awaits and blocks. */
function entangle (words, random, mayBlock) {
  const lock = new api.AsyncLock(words.buffer)
  const rw = new api.RwLock(words.buffer, { byteOffset: 4 })
  const semaphore = new api.Semaphore(words.buffer, { byteOffset: 8 })
  const queue = new api.Queue(words.buffer, { byteOffset: QUEUE_AT, capacity: 2, messageSize: 16 })
  const refuse = () => {}
  const acts = [
    () => lock.tryLock(),
    () => api.unref(Atomics.waitAsync(words, 4, 0).value),
    () => lock.lockAsync({ timeout: random() * 200 }).catch(refuse),
    () => rw.executeShared(() => new Promise(() => {}), { timeout: random() * 20 }).catch(refuse),
    () => semaphore.use(1, () => {}, { timeout: random() * 100 }).catch(refuse),
    () => queue.tryPut(random()),
    () => queue.putAsync(random(), { timeout: random() * 100 }).catch(refuse),
    () => queue.takeAsync({ timeout: random() * 100 }).catch(refuse),
    () => queue.use(() => new Promise(() => {}), { timeout: random() * 20 }).catch(refuse),
    () => Atomics.notify(words, 4, 1)
  ]
  for (let n = 0; n < 30; n++) acts[Math.floor(random() * acts.length)]()
  if (!mayBlock) return
  parentPort.postMessage('entangled')
  // Only the end of the process ends this.
  Atomics.wait(words, 5, 0)
}

function main (seed) {
  const { way, random } = expected(seed)
  const words = new Int32Array(new SharedArrayBuffer(QUEUE_AT + api.Queue.byteLength(2, 16)))
  const workers = Array.from({ length: way === 'by itself' ? 0 : 1 + Math.floor(random() * 3) }, (_, n) => {
    return new Worker(__filename, { workerData: { words, seed: seed + n + 1 } })
  })
  entangle(words, random, false)
  if (way === 'by itself') return
  const end = () => {
    if (way === 'throw') throw new Error('thrown by the soak')
    process.exit(7)
  }
  // Node 10 crashes now and then when it ends while a worker boots or compiles, with this package or without.
  const entangled = MAJOR > 10 ? [] : workers.map(worker => new Promise(resolve => worker.on('message', resolve)))
  Promise.all(entangled).then(() => {
    if (way === 'exit at once') process.nextTick(end)
    else setTimeout(end, random() * 300)
  })
}

if (!isMainThread) entangle(workerData.words, randomOf(workerData.seed), true)
else if (require.main === module) main(Number(process.argv[2]))

module.exports = { expected }
