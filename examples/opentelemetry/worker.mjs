import { parentPort, workerData } from 'node:worker_threads'
import { AsyncLock, Barrier, locks } from 'atomics-waitasync'
import { observeLocks } from './metrics.mjs'
import { startTelemetry } from './telemetry.mjs'

const { orders, start, turns } = workerData

const { meter, collect, shutdown } = startTelemetry()
observeLocks(meter)

/** Blocks for this time, as if it worked. */
function work (milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

const lock = new AsyncLock(orders)
new Barrier(start).wait({ timeout: 10000 }) // throws if another worker could not start
for (let turn = 0; turn < turns; turn++) {
  lock.executeLockedSync(() => work(1))
  if (turn % 10 === 0) locks.requestSync('prices', () => work(2))
}
parentPort.postMessage(await collect())
await shutdown()
