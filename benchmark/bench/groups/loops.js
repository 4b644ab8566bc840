'use strict'

// Workers that take one lock in loops (race.js), beside the article's only: three of them on two cores, and whether two get as much.

const { available } = require('../locks')
const { calibrate, teamsInTurn, threads } = require('../race')
const { cores } = require('../team')

async function run ({ rounds, quick }) {
  const names = available(['host', 'ours', 'again'])
  const steps = calibrate()
  const places = cores()
  // Too many for the cores: the system decides which of them run, for some milliseconds each.
  const two = places && places.slice(0, 2).join()
  const three = await teamsInTurn('loops', names, [two, two, two], steps, rounds(15), async (team) => {
    return { 'lock-workers-3': (await team.race(quick ? 20 : 100)).throughput }
  }, { gc: false })
  const each = [0, 1].map(n => places && places[n % places.length])
  const shares = await teamsInTurn('loops', names, each, steps, rounds(9), async (team) => {
    return { 'lock-share': (await team.race(quick ? 20 : 300)).share }
  }, { gc: false })
  return Object.assign(three, shares)
}

module.exports = { run, threads }
