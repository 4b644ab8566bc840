import { isMainThread, Worker, workerData } from 'worker_threads'
import { Queue } from 'atomics-waitasync'

interface Job {
  number: number
  path: string
  bytes?: Uint8Array
}

type Answer = { number: number, result: string } | { number: number, error: string }

async function main() {
  const jobs = Queue.create<Job>({ capacity: 16, messageSize: 256, name: 'jobs' })
  const answers = Queue.create<Answer>({ capacity: 16, messageSize: 256, format: 'json' })
  new Worker(__filename, { workerData: { jobs, answers } })
  await jobs.putAsync({ number: 1, path: 'a.txt' })
  if (!jobs.tryPut({ number: 2, path: 'b.txt' })) console.log('full')
  jobs.close()
  for await (const answer of answers) console.log('error' in answer ? answer.error : answer.result)
  const last = await answers.takeAsync({ timeout: 5 })
  if (last !== undefined) console.log(last.number)
  await answers.use(async (answer, { attempt, deaths, putBack }) => {
    if (attempt - deaths < 3) putBack({ last: deaths === 0 })
    else console.log(answer.number)
  }, { retry: 'last', timeout: 5 })
  await answers.onIdle({ timeout: 5 })
}

function work() {
  const jobs = new Queue<Job>(workerData.jobs)
  const answers = new Queue<Answer>(workerData.answers)
  for (const { number, path } of jobs) answers.put({ number, result: path })
  while (jobs.useSync(job => answers.put({ number: job.number, error: 'none' })));
  jobs.idle({ timeout: 5 })
  answers.close()
}

if (isMainThread) void main()
else work()
