import { Worker } from 'node:worker_threads'
import { Queue } from 'atomics-waitasync'

/**
 * Workers that do jobs. A job whose worker dies goes to the next free one. A worker that ends before it has taken a job
 * cannot start, so another one would not start either: then the pool stops.
 */
export class Pool {
  constructor (size, file = new URL('./worker.mjs', import.meta.url)) {
    this.file = file
    this.jobs = Queue.create({ capacity: 16, messageSize: 256, name: 'jobs' })
    this.answers = Queue.create({ capacity: 16, messageSize: 256, name: 'answers' })
    // The jobs without an answer, by number.
    this.open = new Map()
    this.count = 0
    this.workers = new Set()
    this.failure = undefined
    for (let n = 0; n < size; n++) this.start()
    this.answer().catch(error => this.stop(error))
  }

  start () {
    const { jobs, answers } = this
    const hasWorked = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(this.file, { workerData: { jobs, answers, hasWorked } })
    let cause
    this.workers.add(worker)
    worker.on('error', (/** @type {Error} */ error) => {
      cause = error
      console.log('a worker has crashed:', error.message)
    })
    worker.on('exit', () => {
      this.workers.delete(worker)
      if (!jobs.closed && hasWorked[0] === 0) {
        this.stop(Object.assign(new Error('a worker has ended before it took a job'), { cause }))
      }
      if (this.failure === undefined && !jobs.ended) this.start()
      else if (this.workers.size === 0) answers.close()
    })
  }

  /** Returns the promise of a job's result. */
  async run (from, to) {
    if (this.failure !== undefined) throw this.failure
    const number = this.count++
    const result = new Promise((resolve, reject) => this.open.set(number, { resolve, reject }))
    try {
      // It awaits room. Where the pool stops meanwhile, both are rejected.
      const [value] = await Promise.all([result, this.jobs.putAsync({ number, from, to })])
      return value
    } finally {
      this.open.delete(number)
    }
  }

  async answer () {
    for await (const { number, result, error } of this.answers) {
      const job = this.open.get(number)
      if (job === undefined) continue // it was done twice, or nobody waits for it any more
      if (error === undefined) job.resolve(result)
      else job.reject(new Error(error))
    }
  }

  /** Lets the workers end once they have done all jobs; ends them after so many milliseconds. */
  async close (timeout = 60000) {
    this.jobs.close()
    await this.jobs.onIdle({ timeout }).catch(error => this.stop(error))
  }

  /** Ends the workers now, whatever they do, and rejects the jobs without an answer. */
  stop (error) {
    if (this.failure !== undefined) return
    this.failure = error
    for (const { reject } of this.open.values()) reject(error)
    this.jobs.close({ discard: true })
    for (const worker of this.workers) worker.terminate()
  }
}
