// Three threads make requests as fast as they may: at most five in any 200 milliseconds, all threads together.
//
//   node examples/rate-limit/index.mts        (Node 22.18 or newer: it runs TypeScript)

import { Worker } from 'node:worker_threads'
import { RateLimit } from './rate-limit.mts'

const MOST = 5
const INTERVAL = 200 // milliseconds
const REQUESTS = 8 // of each thread
const WORKERS = 2

const memory = RateLimit.allocate(MOST)
const limit = new RateLimit(memory, { interval: INTERVAL })

const others = Array.from({ length: WORKERS }, () => new Promise<number[]>((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mts', import.meta.url), {
    workerData: { memory, interval: INTERVAL, requests: REQUESTS }
  })
  worker.on('error', reject).on('message', resolve)
  // One that ends without an answer.
  worker.on('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
}))
const begun: number[] = []
for (let n = 0; n < REQUESTS; n++) {
  await limit.beginAsync()
  begun.push(Number(process.hrtime.bigint()) / 1e6)
}
const moments = begun.concat(...await Promise.all(others)).sort((a, b) => a - b)

// From the first request of all to the last one.
const rounds = Math.ceil(moments.length / MOST) - 1
const elapsed = moments[moments.length - 1] - moments[0]
if (elapsed < rounds * INTERVAL - 50) throw new Error(`${moments.length} requests began within ${elapsed} ms`)
console.log(`${moments.length} requests of ${WORKERS + 1} threads took ${rounds} intervals`)
