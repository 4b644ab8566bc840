// A worker dies in the middle of its critical section. Before the next holder goes on, the lock has it repair the
// unfinished change.
//
//   node examples/surviving-a-crash/index.mjs

import { Worker } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'
import accounts from './accounts.mjs'

const sab = new SharedArrayBuffer(AsyncLock.byteLength + accounts.byteLength)
const bank = accounts(sab, AsyncLock.byteLength)
const lock = new AsyncLock(sab, { repair })

function repair ({ ownerDied }) {
  console.log(`main has the lock, and knows: ownerDied is ${ownerDied}`)
  bank.repair()
}

function transferInWorker (amount, crash) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { sab, amount, crash } })
  return new Promise(resolve => {
    worker.on('error', (/** @type {Error} */ error) => console.log(`a worker crashed: ${error.message}`))
    worker.on('exit', resolve)
  })
}

bank.open(100, 0)
await transferInWorker(30, false)
console.log(`after a transfer of 30: ${bank}`)

// This worker takes 50 from one account and dies before it has added them to the other.
const crash = transferInWorker(50, true)
await crash
console.log(`after a crash in the middle of a transfer of 50: ${bank}`)

await lock.executeLocked(() => console.log(`repaired: ${bank}`))

await transferInWorker(50, false)
await lock.executeLocked(token => console.log(`and on it goes: ${bank}, ownerDied is ${token.ownerDied}`))
