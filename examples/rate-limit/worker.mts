import { parentPort, workerData } from 'node:worker_threads'
import { RateLimit } from './rate-limit.mts'

const { memory, interval, requests } = workerData as { memory: SharedArrayBuffer, interval: number, requests: number }
const limit = new RateLimit(memory, { interval })
const moments: number[] = []
for (let n = 0; n < requests; n++) {
  limit.begin()
  moments.push(Number(process.hrtime.bigint()) / 1e6)
}
parentPort!.postMessage(moments)
