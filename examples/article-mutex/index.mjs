// One mutex for main and three workers: used as the article "Atomics.wait, Atomics.notify, Atomics.waitAsync"
// (https://v8.dev/features/atomics) uses its own: workers block for it, main does not.
//
//   node examples/article-mutex/index.mjs

import { Worker } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const WORKERS = 3
const TIMES = 20000

// The lock, and behind it the counter that it protects: plain reads and writes are enough for that.
const sab = new SharedArrayBuffer(AsyncLock.byteLength + 4)
const lock = new AsyncLock(sab)
const counter = new Int32Array(sab, AsyncLock.byteLength)

const start = () => new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { sab, times: TIMES } })
const workers = Array.from({ length: WORKERS }, start)
const endOf = worker => new Promise((resolve, reject) => {
  worker.on('error', reject)
  worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
})
const ended = Promise.all(workers.map(endOf))

// The event loop goes on while main awaits the lock.
let turns = 0
const ticking = setInterval(() => { turns++ }, 0)
for (let n = 0; n < 1000; n++) {
  await lock.executeLocked(() => { counter[0]++ })
}
await ended
clearInterval(ticking)

await lock.executeLocked(() => {
  const loop = turns > 0 ? 'went on meanwhile' : 'stood still'
  console.log(`counted to ${counter[0]} of ${WORKERS * TIMES + 1000}; main's event loop ${loop}`)
})
