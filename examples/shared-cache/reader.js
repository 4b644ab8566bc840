'use strict'

const { parentPort, workerData: { memory, started, count, last } } = require('worker_threads')
const { Latch } = require('../..')
const { Rates, valueOf } = require('./rates')

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
  if (result !== 1000 * valueOf(from, version) / valueOf(to, version)) throw new Error(`version ${version} was seen in part`)
  reads++
}
parentPort.postMessage(reads)
