import { parentPort, workerData } from 'node:worker_threads'
import { BoundedQueue } from './queue.mts'

const queue = new BoundedQueue((workerData as { memory: SharedArrayBuffer }).memory)
const numbers: number[] = []
for (let value = queue.take(); value !== undefined; value = queue.take()) if (value < 0) numbers.push(value)
parentPort!.postMessage(numbers)
