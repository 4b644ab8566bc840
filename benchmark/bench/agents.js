'use strict'

// The queue alone with very many agents, by a Rust program (benchmark/agents.rs): so many threads do not fit into a
// machine, and the agents of one thread look for each other. No Node has a part in it.

const path = require('path')
const { cargo, environment, find } = require('../../scripts/lib/cargo')
const { succeed } = require('../../scripts/lib/child')

const ROOT = path.join(__dirname, '..', '..')
/** Of building it. Milliseconds. */
const TIMEOUT = 20 * 60 * 1000
const ROUNDS = 21

/** Takes the samples; none where there is no cargo. Many agents' cost, divided by that of one. */
async function registerByAgents ({ rounds, quick }) {
  if (find('cargo') === null) {
    console.error('cargo was not found: the queue with very many agents is left out')
    return {}
  }
  const count = quick ? 1 : Math.max(1, Math.round(ROUNDS * rounds))
  const bench = 'bench --package waitasync-core --bench agents --locked --target-dir'.split(' ')
  const args = [...bench, path.join('target', 'instructions'), '--', String(count)]
  const output = await succeed(cargo(), args, { cwd: ROOT, env: environment(), timeout: TIMEOUT })
  const samples = { ours: [], again: [] }
  for (const line of output.split('\n').filter(line => /^[\d. ]+$/.test(line))) {
    const [one, many, again] = line.split(' ').map(Number)
    samples.ours.push(many / one)
    samples.again.push(again / one)
  }
  return samples
}

module.exports = { registerByAgents }
