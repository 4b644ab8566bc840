// Three threads move money in a circle: each from its own account to the next. Each locks the account that it takes
// from, and then the one that it gives to, so all of them would wait for each other. One gets an error that says so,
// gives its lock back, and tries again.
//
//   node examples/deadlock/index.mjs

import { Worker } from 'worker_threads'

const ACCOUNTS = 3

// The locks, the balances, and a barrier.
const memory = new SharedArrayBuffer(8 * ACCOUNTS + 4)
const balances = new Int32Array(memory, 4 * ACCOUNTS, ACCOUNTS).fill(100)
const errors = []
await Promise.all(Array.from(balances, (_, from) => new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { memory, from, accounts: ACCOUNTS }
  })
  worker.on('message', error => errors.push(error)).on('error', reject)
  worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
})))

for (const { code, cycle } of errors) {
  console.log(`${code}: a cycle of ${cycle.length} threads`)
  cycle.forEach(({ threadId, holds, waitsFor }, n) => {
    const next = cycle[(n + 1) % cycle.length]
    if (waitsFor.id !== next.holds.id) throw new Error(`thread ${threadId} does not wait for thread ${next.threadId}`)
    console.log(`  one holds an ${holds.kind} and waits for the ${waitsFor.kind} of the next`)
  })
}
console.log(`balances in the end: ${Array.from(balances).join(', ')}`)
