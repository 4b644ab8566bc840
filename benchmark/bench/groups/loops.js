'use strict'

// Workers that take one lock in loops (race.js), beside the article's only: three of them on two cores, and whether two
// get as much.

const { available } = require('../locks')
const { Team, calibrate, teamsInTurn, threads } = require('../race')
const { cores } = require('../team')

async function run ({ rounds, quick }) {
  const names = available(['host', 'ours', 'again'])
  const steps = calibrate()
  const places = cores()
  const options = { gc: false, exact: true }
  const inTurn = (usual, ties, measure) =>
    teamsInTurn(names, (name) => new Team('loops', name, ties, steps), rounds(usual), measure, options)
  // Too many for the cores: the system decides which of them run, for some milliseconds each.
  const two = places && places.slice(0, 2).join()
  const three = await inTurn(15, [two, two, two], async (team) => ({
    'lock-workers-3': (await team.race(quick ? 20 : 100)).throughput
  }))
  const each = [0, 1].map(n => places && places[n % places.length])
  const shares = await inTurn(9, each, async team => ({ 'lock-share': (await team.race(quick ? 20 : 300)).share }))
  return Object.assign(three, shares)
}

module.exports = { run, threads }
