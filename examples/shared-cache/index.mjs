// Three workers read a shared table, and block while it changes. Main changes it now and then and is never
// blocked. A waiting writer stops new readers, so they do not keep it out.
//
//   node examples/shared-cache/index.mjs

import { Worker } from 'worker_threads'
import { Latch } from 'atomics-waitasync'
import { Rates } from './rates.mjs'

const CURRENCIES = 50
const READERS = 3
const VERSIONS = 100

const memory = Rates.allocate(CURRENCIES)
const rates = new Rates(memory)
await rates.update(0)
const readers = []
const started = new SharedArrayBuffer(Latch.byteLength)
for (let n = 0; n < READERS; n++) {
  const worker = new Worker(new URL('./reader.mjs', import.meta.url), {
    workerData: { memory, started, count: READERS, last: VERSIONS }
  })
  readers.push(new Promise((resolve, reject) => {
    worker.on('error', reject).on('message', resolve)
    // One that ends without an answer.
    worker.on('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
  }))
}
await new Latch(started, { count: READERS }).waitAsync({ timeout: 10000 }) // rejects if one could not start
for (let version = 1; version <= VERSIONS; version++) {
  const sum = await rates.update(version)
  const expected = CURRENCIES * (CURRENCIES + 1) / 2 * (version + 1)
  if (sum !== expected) throw new Error(`the sum is ${sum}, not ${expected}`)
  await new Promise(resolve => setTimeout(resolve, 1))
}
const reads = await Promise.all(readers)
const times = reads.reduce((a, b) => a + b)
console.log(`${VERSIONS} versions, read ${times} times by ${READERS} workers, each time all of one version`)
