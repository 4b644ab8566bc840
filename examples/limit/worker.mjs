import { workerData } from 'worker_threads'
import readFiles from './read-files.mjs'

const { memory, files } = workerData

await readFiles(memory, files)
