'use strict'

// Workers that take one lock in loops (race.js), beside the article's only: three of them on two cores, and whether two get as much.

const { takeTurns } = require('../sampling')
const { available } = require('../locks')
const { Team, calibrate, threads } = require('../race')
const { cores } = require('../team')

async function run ({ rounds, quick }) {
  const names = available(['host', 'ours', 'again'])
  const steps = calibrate()
  const places = cores()
  const results = {}
  const measure = async (figure, tasks, { usual, milliseconds, valueOf }) => {
    const teams = {}
    for (const name of names) teams[name] = new Team('loops', name, tasks, steps)
    Object.assign(results, await takeTurns(names, rounds(usual), async (name) => {
      return { [figure]: valueOf(await teams[name].race(quick ? 20 : milliseconds)) }
    }, { gc: false }))
    for (const name of names) {
      await teams[name].end()
      if (teams[name].lost !== 0) throw new Error(`${name}: ${teams[name].lost} updates are lost, because two were inside at once`)
    }
  }

  const two = places && places.slice(0, 2).join()
  // Too many for the cores: the system decides which of them run, for some milliseconds each.
  await measure('lock-workers-3', [two, two, two], { usual: 15, milliseconds: 100, valueOf: ({ throughput }) => throughput })
  const each = [0, 1].map(n => places && places[n % places.length])
  await measure('lock-share', each, { usual: 9, milliseconds: 300, valueOf: ({ share }) => share })
  return results
}

module.exports = { run, threads }
