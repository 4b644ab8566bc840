'use strict'

// Two workers that take one lock in loops (race.js): how often, what processor time it costs, and how long the main
// thread waits that wants the lock every millisecond.

const { now, quantile, sleep } = require('../sampling')
const { available, open } = require('../locks')
const { Team, calibrate, teamsInTurn, threads } = require('../race')
const { cores } = require('../team')

const WORKERS = 2

async function run ({ rounds, quick }) {
  // An entry without an install, so that the peers are as they are.
  const names = available(['host', 'ours', 'again', 'floor', 'multithreading', 'worker-mutex', 'web-locks'])
  const steps = calibrate()
  const places = cores()
  const ties = Array.from({ length: WORKERS }, (_, n) => places && places[n % places.length])
  // The floor is one worker alone.
  const teamOf = name => new Team('contended', name, name === 'floor' ? ties.slice(0, 1) : ties, steps)

  const alone = await teamsInTurn(names, teamOf, rounds(80), async (team) => {
    const { throughput, cpu } = await team.race(8)
    return { 'lock-workers': throughput, 'lock-workers-cpu': cpu }
  }, { warmUp: 5, gc: false, tries: 8 })
  const usable = names.filter(name => name !== 'floor' && alone.failures[name] === undefined)
  const withMain = await teamsInTurn(usable, teamOf, rounds(5), async (team, name) => {
    const waits = []
    const { throughput } = await team.race(quick ? 100 : 2000, end => demand(name, team.sab, end, team.work, waits))
    return {
      'lock-main-p99': quantile(waits, 0.99),
      'lock-main-max': quantile(waits, 1),
      'lock-main-workers': throughput
    }
  })
  const failures = Object.assign(alone.failures, withMain.failures)
  const lost = {}
  for (const name of names) lost[name] = alone.lost[name].concat(withMain.lost[name] || [])
  return Object.assign(alone, withMain, { failures, lost })
}

/** Demands the lock, in main, a millisecond after each hold. Puts its waits, in milliseconds, into `waits`. */
async function demand (name, sab, end, callback, waits) {
  const lock = await open(name, { sab })
  let served = 0
  let asked
  let execution = Promise.resolve()
  let over
  const patience = new Promise((resolve) => { over = resolve })
  const timer = setTimeout(over, (end - now()) / 1e6, 'over')
  while (now() < end) {
    asked = now()
    execution = lock.execute(() => {
      waits.push((now() - asked) / 1e6)
      served++
      callback()
    })
    if (await Promise.race([execution, patience]) === 'over') {
      // It still waits. That counts, too.
      waits.push((now() - asked) / 1e6)
      break
    }
    await sleep(1)
  }
  clearTimeout(timer)
  return () => execution.then(() => served)
}

module.exports = { demand, run, threads }
