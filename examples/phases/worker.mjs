import { workerData } from 'worker_threads'
import compute from './compute.mjs'

const { memory, parties, party } = workerData

await compute(memory, parties, party, true)
