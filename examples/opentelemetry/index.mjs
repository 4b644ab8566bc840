// Which locks cost time, as a service sees it by OpenTelemetry: a histogram of waits and one of holds by kind and name,
// counters of timeouts, aborts and deaths, a gauge of waiters. Each thread measures for itself; main prints the sums.
//
//   npm install && node index.mjs

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { AsyncLock, Barrier } from 'atomics-waitasync'
import { observeLocks, observeWaiters } from './metrics.mjs'
import { startTelemetry, sumOf } from './telemetry.mjs'

const { meter, collect, shutdown } = startTelemetry()
const stop = observeLocks(meter)
observeWaiters(meter)

// Three workers take orders; sometimes they look prices up, under a lock that is only a name.
const orders = AsyncLock.create({ name: 'orders' })
const start = Barrier.create({ parties: 3 })
const reports = await Promise.all(Array.from({ length: 3 }, async () => {
  const worker = new Worker(new URL('worker.mjs', import.meta.url), { workerData: { orders, start, turns: 50 } })
  const [rows] = await once(worker, 'message')
  return rows
}))

// A worker ends while it holds the ledger, and main takes that over.
const ledger = AsyncLock.create({ name: 'ledger' })
const crashing = new Worker(new URL('crash.mjs', import.meta.url), { workerData: ledger })
await once(crashing, 'message')
const token = await ledger.lockAsync()
console.log('the holder of the ledger has died:', token.ownerDied)

// While main holds it, one request times out, one is aborted, and two wait when the metrics are collected.
const impatient = ledger.lockAsync({ timeout: 20 })
const controller = new AbortController()
const withdrawn = ledger.lockAsync({ signal: controller.signal })
controller.abort()
console.log((await Promise.allSettled([impatient, withdrawn])).map(({ reason }) => reason.name).join(', '))
const patient = [ledger.executeLocked(() => {}), ledger.executeLocked(() => {})]
const isOfLedger = ({ metric, lock }) => metric === 'lock.waiters' && lock === 'AsyncLock ledger'
const [{ value: waiters }] = (await collect()).filter(isOfLedger)
console.log('waiters of the ledger:', waiters)
token.unlock()
await Promise.all(patient)

const rows = sumOf([...reports.flat(), ...await collect()])
console.table(rows)
stop()
await shutdown()
