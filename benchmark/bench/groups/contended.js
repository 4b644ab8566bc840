'use strict'

// Two workers that take one lock in loops (race.js): how often, what processor time it costs, and how long the main thread waits that
// wants the lock every millisecond.

const { now, quantile, sleep, takeTurns } = require('../sampling')
const { available, open } = require('../locks')
const { Team, calibrate, threads } = require('../race')
const { cores } = require('../team')

const WORKERS = 2

async function run ({ rounds, quick }) {
  // What has not installed anything, so that the peers are as they are.
  const names = available(['host', 'ours', 'again', 'floor', 'multithreading', 'worker-mutex', 'web-locks'])
  const steps = calibrate()
  const places = cores()
  /** Why a lock could not be used to the end. */
  const failures = {}

  // The floor is one worker alone.
  const teams = {}
  for (const name of names) {
    const ties = Array.from({ length: name === 'floor' ? 1 : WORKERS }, (_, n) => places && places[n % places.length])
    teams[name] = new Team('contended', name, ties, steps)
  }

  /** A race, unless the lock has failed before. Of others' locks, that is a result. */
  const tryRace = async (name, ...race) => {
    if (failures[name] !== undefined) return undefined
    try {
      return await teams[name].race(...race)
    } catch (error) {
      if (name === 'ours' || name === 'again') throw error
      failures[name] = error.message
      await teams[name].end()
      return undefined
    }
  }

  const alone = await takeTurns(names, rounds(80), async (name) => {
    const figures = await tryRace(name, 8)
    return figures ? { 'lock-workers': figures.throughput, 'lock-workers-cpu': figures.cpu } : {}
  }, { warmUp: 5, gc: false, tries: 8 })

  const withMain = await takeTurns(names.filter(name => name !== 'floor'), rounds(5), async (name) => {
    const waits = []
    const { sab, work } = teams[name]
    const figures = await tryRace(name, quick ? 100 : 2000, (_, end) => demand(name, sab, end, work, waits))
    if (figures === undefined) return {}
    return { 'lock-main-p99': quantile(waits, 0.99), 'lock-main-max': quantile(waits, 1), 'lock-main-workers': figures.throughput }
  })
  await Promise.all(names.map(name => teams[name].end()))

  const lost = {}
  for (const name of names) lost[name] = [teams[name].lost]
  return Object.assign(alone, withMain, { lost, failures })
}

/** The main thread wants the lock a millisecond after it has had it. Puts its waits, in milliseconds, into `waits`. */
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
