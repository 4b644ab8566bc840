import { workerData } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

const jobs = new Queue(workerData.jobs)
const answers = new Queue(workerData.answers)
const { hasWorked } = workerData

function countPrimes (from, to) {
  if (from < 0) throw new RangeError('there are no such primes')
  let count = 0
  for (let n = Math.max(2, from); n < to; n++) {
    let divisor = 2
    while (divisor * divisor <= n && n % divisor !== 0) divisor++
    if (divisor * divisor > n) count++
  }
  return count
}

function work ({ number, from, to }, { attempt }) {
  hasWorked[0] = 1
  if (attempt > 2) answers.put({ number, error: 'the job has ended two workers' })
  else answers.put({ number, result: countPrimes(from, to) })
}

while (jobs.useSync(work)); // until the queue is closed and empty
