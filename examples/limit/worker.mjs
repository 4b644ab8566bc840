import { workerData } from 'worker_threads'
import { Semaphore } from 'atomics-waitasync'
import readFiles from './read-files.mjs'

const { memory, limit, files } = workerData

await readFiles(memory, new Semaphore(limit), files)
