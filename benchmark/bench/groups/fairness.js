'use strict'

// Main's wait for a lock that two workers take in loops: with nothing to do inside and with so much that a newcomer
// hardly ever finds it free; and its cost for the workers. Beside the article's mutex, over Node's own Atomics and over
// this package's.

const { quantile } = require('../sampling')
const { available } = require('../locks')
const { INSIDE, Team, calibrate, teamsInTurn, threads } = require('../race')
const { demand } = require('./contended')

/** Microseconds. */
const WORK = [0, 20]

async function run ({ rounds, quick }) {
  const names = available(['host', 'ours', 'again', 'article-ours'])
  const seconds = quick ? 0.3 : 2
  const results = {}
  for (const work of WORK) {
    const steps = Math.round(calibrate() * work * 1e3 / INSIDE)
    const teamOf = name => new Team('fairness', name, [undefined, undefined], steps)
    Object.assign(results, await teamsInTurn(names, teamOf, rounds(3), async (team, name) => {
      const waits = []
      const { throughput, cpu } = await team.race(seconds * 1e3, end =>
        demand(name, team.sab, end, team.work, waits))
      return {
        [`fair-${work}-p50`]: quantile(waits, 0.5),
        [`fair-${work}-p99`]: quantile(waits, 0.99),
        [`fair-${work}-max`]: quantile(waits, 1),
        [`fair-${work}-turns`]: waits.length / seconds,
        [`fair-${work}-workers`]: throughput,
        [`fair-${work}-cores`]: throughput * cpu / 1e3
      }
    }, { exact: true }))
  }
  return results
}

module.exports = { run, threads }
