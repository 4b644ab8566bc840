'use strict'

// Two workers produce numbers and block while the queue is full. Main consumes them and is never blocked.
//
//   node examples/bounded-queue

const path = require('path')
const { Worker } = require('worker_threads')
const BoundedQueue = require('./queue')

const PRODUCERS = 2
const NUMBERS = 2000 // of each

async function main () {
  const memory = BoundedQueue.allocate(8)
  const queue = new BoundedQueue(memory)
  const failures = []
  for (let n = 0; n < PRODUCERS; n++) {
    const worker = new Worker(path.join(__dirname, 'producer.js'), { workerData: { memory, first: n * NUMBERS, count: NUMBERS } })
    failures.push(new Promise((resolve, reject) => worker.on('error', reject)))
  }

  const last = new Array(PRODUCERS).fill(-1)
  let sum = 0
  for (let n = 0; n < PRODUCERS * NUMBERS; n++) {
    const value = await Promise.race([queue.takeAsync(), ...failures])
    const producer = Math.floor(value / NUMBERS)
    if (value <= last[producer]) throw new Error(`${value} came after ${last[producer]}`)
    last[producer] = value
    sum += value
  }

  const total = PRODUCERS * NUMBERS
  const expected = total * (total - 1) / 2
  if (sum !== expected || !queue.isEmpty) throw new Error(`the sum is ${sum}, not ${expected}`)
  console.log(`${total} numbers went through ${queue.capacity} places; their sum is ${sum}`)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
