import { workerData } from 'worker_threads'
import { Latch, Semaphore } from 'atomics-waitasync'

const { memory, limit: clone } = workerData
const limit = new Semaphore(clone)

limit.use(limit.permits, () => {
  new Latch(memory, { count: 1, byteOffset: 4 }).countDown()
  return new Promise(resolve => setTimeout(resolve, 1e6))
})
