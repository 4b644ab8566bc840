import { workerData } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const { sab, times } = workerData

const lock = new AsyncLock(sab)
const counter = new Int32Array(sab, AsyncLock.byteLength)

for (let n = 0; n < times; n++) {
  const token = lock.lock()
  try {
    counter[0]++
  } finally {
    token.unlock()
  }
}
