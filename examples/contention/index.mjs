// The locks for which threads wait most. Each thread listens to the waits that are published on Node's
// diagnostics_channel. Main adds them up and prints the table of the most contended locks.
//
//   node examples/contention/index.mjs

import { Worker } from 'worker_threads'
import * as contention from './contention.mjs'

const THREADS = 3
const TURNS = 200

// The locks: one that all threads take, one that most take to read, and one for each thread. A Barrier, at which they
// begin together.
const memory = new SharedArrayBuffer(4 * (3 + THREADS))
const totals = contention.createTable()
await Promise.all(Array.from({ length: THREADS }, (_, nth) => new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { memory, nth, threads: THREADS, turns: TURNS }
  })
  worker.on('message', table => contention.add(totals, table)).on('error', reject)
  worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
})))
const rows = contention.mostContended(totals)
console.table(rows)
const [first] = rows
console.log(`most of the time ${THREADS} threads waited for the ${first.kind} "${first.name}"`)
