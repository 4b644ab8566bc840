'use strict'

// Which locks do threads wait for most? Each thread listens to the waits that Node's diagnostics_channel tells of, main adds them up,
// and prints the table of the most contended locks.
//
//   node examples/contention

const path = require('path')
const { Worker } = require('worker_threads')
const contention = require('./contention')

const THREADS = 3
const TURNS = 200

async function main () {
  if (!contention.isPossible) {
    console.log('this Node has no diagnostics_channel')
    return
  }
  // The locks: one that all threads take, one that most take to read, and one for each thread.
  const memory = new SharedArrayBuffer(4 * (2 + THREADS))
  const totals = contention.createTable()
  await Promise.all(Array.from({ length: THREADS }, (_, nth) => new Promise((resolve, reject) => {
    const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData: { memory, nth, turns: TURNS } })
    worker.on('message', table => contention.add(totals, table)).on('error', reject).on('exit', resolve)
  })))
  const rows = contention.mostContended(totals)
  console.table(rows)
  const [first] = rows
  console.log(`most of the time ${THREADS} threads waited for an ${first.kind}`)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
