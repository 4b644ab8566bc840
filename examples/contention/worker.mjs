import { parentPort, workerData } from 'worker_threads'
import { AsyncLock, Barrier, RwLock } from 'atomics-waitasync'
import * as contention from './contention.mjs'

const { memory, nth, threads, turns } = workerData

const table = contention.count()
const shared = new AsyncLock(memory, { name: 'queue' })
const cache = new RwLock(memory, { byteOffset: 4, name: 'cache' })
const start = new Barrier(memory, { byteOffset: 8, parties: threads })
const own = new AsyncLock(memory, { byteOffset: 12 + 4 * nth, name: `own of ${nth}` })

/** Blocks for this time, as if it worked. */
function work (milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

const refresh = () => cache.executeLockedSync(() => work(1))
const look = () => cache.executeSharedSync(() => work(0.1))
const send = () => shared.executeLockedSync(() => work(0.5))

start.wait({ timeout: 10000 }) // throws if another worker could not start
for (let turn = 0; turn < turns; turn++) {
  own.lock().unlock()
  if (turn % 10 === 0) refresh()
  else look()
  send()
}
parentPort.postMessage(table)
