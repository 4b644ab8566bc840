// Heat spreads over a plate. Two workers and main compute a third of the rows each, in step: the workers block for the
// others, main awaits them. The result is compared with that of a single thread.
//
//   node examples/phases/index.mjs

import { Worker } from 'worker_threads'
import compute from './compute.mjs'
import { SIZE, STEPS, allocate, step, views } from './plate.mjs'

const PARTIES = 3

const memory = allocate()
const workers = []
for (let party = 1; party < PARTIES; party++) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { memory, parties: PARTIES, party }
  })
  workers.push(new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
  }))
}
const [result] = await Promise.all([compute(memory, PARTIES, 0, false), ...workers])

let [from, to] = views(allocate())
for (let n = 0; n < STEPS; n++) {
  step(from, to, 0, SIZE)
  ;[from, to] = [to, from]
}
const wrong = from.findIndex((value, at) => value !== result[at])
if (wrong >= 0) throw new Error(`point ${wrong} is ${result[wrong]}, not ${from[wrong]}`)
const led = new Int32Array(memory, 4, 1)[0]
if (led !== STEPS) throw new Error(`${led} steps had a leader, not ${STEPS}`)
const mean = result.reduce((sum, value) => sum + value, 0) / result.length
const size = `${SIZE} × ${SIZE}`
console.log(`${STEPS} steps of ${size} points on ${PARTIES} threads: as on one thread; the mean is ${mean.toFixed(3)}`)
