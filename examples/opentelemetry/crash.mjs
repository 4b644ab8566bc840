import { parentPort, workerData } from 'node:worker_threads'
import { AsyncLock } from 'atomics-waitasync'

new AsyncLock(workerData).lock()
parentPort.postMessage('locked')
// It ends while it holds the lock.
setImmediate(() => process.exit())
