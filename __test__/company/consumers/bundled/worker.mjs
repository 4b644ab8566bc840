import { workerData } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const { sab, rounds } = workerData
const lock = new AsyncLock(sab)
const counter = new Int32Array(sab, AsyncLock.byteLength, 1)

for (let i = 0; i < rounds; i++) {
  const token = lock.lock()
  counter[0]++
  token.unlock()
}
