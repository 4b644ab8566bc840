'use strict'

// How long main waits for a lock that two workers take in loops, with nothing to do inside and with so much that a newcomer hardly ever
// finds it free; and what that costs the workers. Beside the article's mutex, over Node's own Atomics and over this package's.

const { quantile, takeTurns } = require('../sampling')
const { available } = require('../locks')
const { INSIDE, Team, calibrate, threads } = require('../race')
const { demand } = require('./contended')

const WORKERS = 2
/** Microseconds. */
const WORK = [0, 20]

async function run ({ rounds, quick }) {
  const names = available(['host', 'ours', 'again', 'article-ours'])
  const results = {}
  for (const work of WORK) {
    const steps = Math.round(calibrate() * work * 1e3 / INSIDE)
    const seconds = quick ? 0.3 : 2
    const teams = {}
    for (const name of names) teams[name] = new Team('fairness', name, new Array(WORKERS).fill(undefined), steps)
    Object.assign(results, await takeTurns(names, rounds(3), async (name) => {
      const waits = []
      const { sab, work: count } = teams[name]
      const { throughput, cpu } = await teams[name].race(seconds * 1e3, (_, end) => demand(name, sab, end, count, waits))
      return {
        [`fair-${work}-p50`]: quantile(waits, 0.5),
        [`fair-${work}-p99`]: quantile(waits, 0.99),
        [`fair-${work}-max`]: quantile(waits, 1),
        [`fair-${work}-turns`]: waits.length / seconds,
        [`fair-${work}-workers`]: throughput,
        [`fair-${work}-cores`]: throughput * cpu / 1e3
      }
    }))
    for (const name of names) {
      await teams[name].end()
      if (teams[name].lost !== 0) throw new Error(`${name}: ${teams[name].lost} updates are lost, because two were inside at once`)
    }
  }
  return results
}

module.exports = { run, threads }
