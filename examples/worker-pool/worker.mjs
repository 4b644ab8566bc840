import { workerData } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

const jobs = new Queue(workerData.jobs)
const answers = new Queue(workerData.answers)
const { hasWorked } = workerData

function countPrimes (from, to) {
  if (from < 0) throw new RangeError('there are no such primes')
  if (to < from) process.exit(1) // as a crash of native code would
  let count = 0
  for (let n = Math.max(2, from); n < to; n++) {
    let divisor = 2
    while (divisor * divisor <= n && n % divisor !== 0) divisor++
    if (divisor * divisor > n) count++
  }
  return count
}

function work ({ number, from, to }, { attempt, deaths }) {
  hasWorked[0] = 1
  if (deaths > 1) return answers.put({ number, error: 'the job has ended two workers' })
  try {
    answers.put({ number, result: countPrimes(from, to) })
  } catch (error) {
    if (attempt - deaths < 3) throw error
    answers.put({ number, error: `the job has failed three times: ${error.message}` })
  }
}

for (let goesOn = true; goesOn;) { // until the queue is closed and empty
  try {
    goesOn = jobs.useSync(work, { retry: 'last' })
  } catch {
    // The job is done again, behind the others.
  }
}
