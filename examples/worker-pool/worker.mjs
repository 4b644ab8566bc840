import { workerData } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

const jobs = new Queue(workerData.jobs)
const answers = new Queue(workerData.answers)

function work (n, { attempt }) {
  if (n % 10 === 0 && attempt === 1) process.exit(1) // as if it had crashed
  answers.put({ n, square: n * n })
}

while (jobs.useSync(work)); // until the queue is closed and empty
