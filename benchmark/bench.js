'use strict'

// The costs of this package and its locks, beside Node's and others'; and the least that JavaScript needs for the same.
//
//   npm run bench [-- OPTIONS]
//
//   --node 14.21.3[,24]   on these instead of the Node that runs this: full versions, major ones, or `current`
//   --only lock[,turn]    some figures: groups, or parts of their names
//   --rounds 1            the factor of the usual number of samples
//   --quick               one small sample of each figure: shows that everything runs, and nothing else
//   --record              with --only: writes these figures over those of the last complete run; the page says so
//   --json                prints the values as JSON instead of tables
//
// A complete run writes benchmark/RESULTS.md, a picture and results.json. One with --quick, or with --only and without
// --record, writes nothing; nor does one with ATOMICS_WAITASYNC_PORTABLE=1, which measures the code for processors
// whose atomic operations are no full fences (lib/agent/registers.js). Node 20 or newer, to run this; the measured
// programs run on every Node that the package runs on. Takes about ten minutes for each Node.

const { argumentsOf, command, positive } = require('../scripts/lib/arguments')
const nodes = require('../scripts/nodes')
const setup = require('../scripts/setup')
const { run: runChild } = require('../scripts/lib/child')
const { withScratch } = require('../scripts/lib/scratch')
const { select } = require('./bench/figures')
const { install, installPeers } = require('./bench/installed')
const machine = require('./bench/machine')
const report = require('./bench/report')
const { run } = require('./bench/run')
const { summarise } = require('./bench/verdict')

const OPTIONS = {
  node: { type: 'string', default: 'current', read: nodes.read },
  only: { type: 'string' },
  rounds: { type: 'string', default: '1', read: positive },
  quick: { type: 'boolean', default: false },
  record: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false }
}

/** The groups whose figures are those of the published package. */
const PUBLISHED = ['bystanders', 'first', 'free', 'processes', 'start', 'words']

async function main () {
  const options = argumentsOf(__filename, OPTIONS)
  const figures = select(options.only)
  await setup.run()
  if (figures.some(({ peers, group }) => peers !== undefined || group === 'processes')) await installPeers()
  const results = {}
  await withScratch(async installed => {
    if (figures.some(({ group }) => PUBLISHED.includes(group))) await install(installed)
    await nodes.each(options.node, async (node) => {
      results[node.version] = await measure(node, figures, { ...options, installed })
    })
  })
  if (options.json) console.log(JSON.stringify(results, null, 2))
}

/** Prints the tables of one Node. Writes the page after a whole run. */
async function measure (node, figures, { json, only, quick, record, rounds, installed }) {
  const { stdout } = await runChild(node.path, ['-p', 'process.versions.v8'])
  const where = { ...machine.describe(), v8: stdout.trim(), rounds }
  const { samples, failures, errors } = await run(node, figures, { quick, rounds, installed })
  const values = {}
  for (const figure of figures)
    if (samples[figure.id] !== undefined) values[figure.id] = summarise(figure, samples[figure.id])
  for (const error of errors) console.error(`Node ${node.version}: ${error}`)
  if (errors.length > 0) process.exitCode = 1
  const result = { machine: where, figures: values, failures }
  const trial = quick ? '\n\n(--quick: a trial, of which no figure means anything)' : ''
  if (!json) console.log(`\n${report.section(node.version, result)}${trial}`)
  const isWhole = only === undefined
  if (errors.length === 0 && (isWhole || record) && !quick && !process.env.ATOMICS_WAITASYNC_PORTABLE)
    report.save(node.version, isWhole ? result : report.over(node.version, only, result))
  return result
}

command(main)
