import { parentPort, workerData } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const lock = new AsyncLock(workerData)
// Blocks for two seconds at most.
const token = lock.lockIfAvailable(2000)
if (token === null) throw new Error('the lock is not free')
parentPort.postMessage('locked')
parentPort.once('message', () => token.unlock())
