import { workerData } from 'node:worker_threads'
import { BoundedQueue } from './queue.mts'

const { memory, first, count } = workerData as { memory: SharedArrayBuffer, first: number, count: number }
const queue = new BoundedQueue(memory)
for (let n = 0; n < count; n++) queue.put(first + n)
