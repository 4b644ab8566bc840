// Which locks cost time, as a service sees it by OpenTelemetry: a histogram of waits and one of holds by kind and name,
// counters of timeouts, aborts and deaths, the number of waiters, and the oldest wait. Each thread measures for itself;
// main prints the sums.
//
//   npm install && node index.mjs

import { Worker } from 'node:worker_threads'
import { AsyncLock, Barrier } from 'atomics-waitasync'
import { observeLocks, observeWaiters } from './metrics.mjs'
import { startTelemetry, sumOf } from './telemetry.mjs'

const { meter, collect, shutdown } = startTelemetry()
const stop = observeLocks(meter)
observeWaiters(meter)
// The last measurements are exported before the process ends.
process.once('SIGTERM', () => shutdown().finally(() => process.exit(143)))

/** Returns the promise of a worker's message. Rejects if it ends without one; its error ends the process. */
const messageOf = worker => new Promise((resolve, reject) => {
  worker.once('message', resolve).once('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
})

// Three workers take orders; sometimes they look prices up, under a lock that is only a name.
const orders = AsyncLock.create({ name: 'orders' })
const start = Barrier.create({ parties: 3 })
const reports = await Promise.all(Array.from({ length: 3 }, async () => {
  const worker = new Worker(new URL('worker.mjs', import.meta.url), { workerData: { orders, start, turns: 50 } })
  return messageOf(worker)
}))

// A worker ends while it holds the ledger, and main takes that over.
const ledger = AsyncLock.create({ name: 'ledger' })
const crashing = new Worker(new URL('crash.mjs', import.meta.url), { workerData: ledger })
await messageOf(crashing)
const token = await ledger.lockAsync()
console.log('the holder of the ledger has died:', token.ownerDied)

// While main holds it, one request times out, one is aborted, and two wait when the metrics are collected.
const impatient = ledger.lockAsync({ timeout: 20 })
const controller = new AbortController()
const withdrawn = ledger.lockAsync({ signal: controller.signal })
controller.abort()
console.log((await Promise.all([impatient, withdrawn].map(wait => wait.catch(error => error.name)))).join(', '))
const patient = [ledger.executeLocked(() => {}), ledger.executeLocked(() => {})]
const found = (await collect()).filter(({ lock }) => lock === 'AsyncLock ledger')
const valueOf = name => found.find(({ metric }) => metric === name).value
console.log('waiters of the ledger:', valueOf('lock.waiters'))
console.log('the oldest waits:', valueOf('lock.wait.oldest') > 0)
token.unlock()
await Promise.all(patient)

const rows = sumOf([...reports.flat(), ...await collect()])
console.table(rows)
stop()
await shutdown()
