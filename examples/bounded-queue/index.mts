// Workers put numbers into a queue and block while it is full; main and another worker take them, and main is never blocked. One producer
// dies on the way: the others go on.
//
//   node examples/bounded-queue/index.mts        (Node 22.18 or newer: it runs TypeScript)

import { Worker } from 'node:worker_threads'
import { BoundedQueue } from './queue.mts'

const PRODUCERS = 2
const NUMBERS = 2000 // of each

const memory = BoundedQueue.allocate(8)
const queue = new BoundedQueue(memory)

const start = (file: string, data: object) => new Worker(new URL(file, import.meta.url), { workerData: { memory, ...data } })
/** However it ends: the exit code. */
const end = (worker: Worker) => new Promise(resolve => worker.on('error', () => {}).on('exit', resolve))

const dying = start('./producer.mts', { first: 0, count: 1e9 })
const producers = Array.from({ length: PRODUCERS }, (_, n) => start('./producer.mts', { first: -NUMBERS * (n + 1), count: NUMBERS }))
const consumer = start('./consumer.mts', {})
const taken = new Promise<number[]>((resolve, reject) => consumer.on('error', reject).once('message', resolve))

// Only the thread that started the producers knows when the last one has ended, in whatever way.
Promise.all([dying, ...producers].map(end)).then(() => queue.close())

const numbers: number[] = []
for (;;) {
  const value = await queue.takeAsync()
  if (value === undefined) break
  if (value < 0) numbers.push(value)
  if (value > 500) dying.terminate()
}
numbers.push(...await taken)

const total = PRODUCERS * NUMBERS
const distinct = new Set(numbers).size
if (numbers.length !== total || distinct !== total) throw new Error(`${numbers.length} numbers, ${distinct} distinct ones; not ${total}`)
console.log(`${total} numbers went through ${queue.capacity} places, each once; a third producer died on the way`)
