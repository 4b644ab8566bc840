// Workers do jobs from a queue, and answer by another one. Some die in the middle of a job: it is delivered again, and main knows nothing of it.
//
//   node examples/worker-pool/index.mjs

import { Worker } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

const WORKERS = 3
const JOBS = 60

const jobs = Queue.create({ capacity: 8, messageSize: 64, name: 'jobs' })
const answers = Queue.create({ capacity: 8, messageSize: 64, name: 'answers' })

let running = 0
let crashes = 0

function start () {
  running++
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { jobs, answers } })
  worker.on('exit', code => {
    running--
    if (code !== 0) crashes++
    if (!jobs.ended) start()
    else if (running === 0) answers.close()
  })
}

async function putAll () {
  for (let n = 1; n <= JOBS; n++) await jobs.putAsync(n) // awaits room
  jobs.close()
}

for (let n = 0; n < WORKERS; n++) start()
putAll()

const squares = new Map()
for await (const { n, square } of answers) squares.set(n, square)

for (let n = 1; n <= JOBS; n++) if (squares.get(n) !== n * n) throw new Error(`the square of ${n} is ${squares.get(n)}`)
console.log(`${squares.size} of ${JOBS} jobs are done; ${crashes} workers died on the way`)
