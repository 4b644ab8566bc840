import { Worker } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

/** Workers that do jobs. A job whose worker dies goes to the next free one. */
export class Pool {
  constructor (size) {
    this.jobs = Queue.create({ capacity: 16, messageSize: 256, name: 'jobs' })
    this.answers = Queue.create({ capacity: 16, messageSize: 256, name: 'answers' })
    // The jobs without an answer, by number.
    this.open = new Map()
    this.count = 0
    this.workers = 0
    for (let n = 0; n < size; n++) this.start()
    this.answer()
  }

  start () {
    const { jobs, answers } = this
    this.workers++
    const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { jobs, answers } })
    worker.on('error', error => console.log('a worker has crashed:', error.message))
    worker.on('exit', () => {
      this.workers--
      if (!jobs.ended) this.start()
      else if (this.workers === 0) answers.close()
    })
  }

  /** Returns the promise of a job's result. */
  async run (from, to) {
    const number = this.count++
    const result = new Promise((resolve, reject) => this.open.set(number, { resolve, reject }))
    await this.jobs.putAsync({ number, from, to }) // awaits room
    return result
  }

  async answer () {
    for await (const { number, result, error } of this.answers) {
      const job = this.open.get(number)
      if (job === undefined) continue // it was done twice
      this.open.delete(number)
      if (error === undefined) job.resolve(result)
      else job.reject(new Error(error))
    }
  }

  /** Lets the workers end once they have done all jobs. */
  close () {
    this.jobs.close()
  }
}
