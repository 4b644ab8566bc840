import { parentPort, workerData } from 'worker_threads'
import { Latch } from 'atomics-waitasync'
import { Rates, valueOf } from './rates.mjs'

const { memory, started, count, last } = workerData

const rates = new Rates(memory)
const currencies = rates.values.length
new Latch(started, { count }).countDown()
let reads = 0
let seen = 0
while (seen < last) {
  const from = reads % currencies
  const to = (reads * 7 + 3) % currencies
  const { result, version } = rates.convert(1000, from, to)
  if (version < seen) throw new Error(`version ${version} has come after ${seen}`)
  seen = version
  const expected = 1000 * valueOf(from, version) / valueOf(to, version)
  if (result !== expected) throw new Error(`version ${version} was seen in part`)
  reads++
}
parentPort.postMessage(reads)
