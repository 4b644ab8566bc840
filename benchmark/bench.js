'use strict'

// The cost of this package beside Node's own Atomics, of its locks beside others, and of the least that JavaScript needs for the same.
//
//   npm run bench [-- OPTIONS]
//
//   --node 14.21.3[,24]   on these instead of the Node that runs this: full versions, major ones, or `current`
//   --only lock[,turn]    some figures: groups, or parts of their names
//   --rounds 1            the factor of the usual number of samples
//   --quick               one small sample of each figure: shows that everything runs, and nothing else
//   --json                prints the values as JSON instead of tables
//   --portable            also with the code for processors whose atomic operations are no full fences (lib/agent/counters.js): what
//                         that costs, beside the code for this processor. Takes twice as long
//
// A complete run writes benchmark/RESULTS.md, two pictures and results.json; one with --only, --quick or --portable writes nothing. Node 20
// or newer, to run this; what is measured runs on every Node that the package runs on. Takes about ten minutes for each Node.

const path = require('path')
const { argumentsOf, command, positive } = require('../scripts/lib/arguments')
const { npm } = require('../scripts/lib/npm')
const nodes = require('../scripts/nodes')
const setup = require('../scripts/setup')
const { run: runChild } = require('../scripts/lib/child')
const { withScratch } = require('../scripts/lib/scratch')
const { select } = require('./bench/figures')
const { install } = require('./bench/installed')
const machine = require('./bench/machine')
const report = require('./bench/report')
const { run } = require('./bench/run')
const table = require('./bench/table')
const { summarise } = require('./bench/verdict')

const USAGE = 'npm run bench -- [--node VERSION[,…]] [--only NAME[,…]] [--rounds FACTOR] [--quick] [--json] [--portable]'
const TIMEOUT = 120000

const OPTIONS = {
  node: { type: 'string', default: 'current', read: nodes.read },
  only: { type: 'string' },
  rounds: { type: 'string', default: '1', read: positive },
  quick: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  portable: { type: 'boolean', default: false }
}

/** The packages that the locks are compared with. What cannot be had is left out of the tables. */
async function installPeers () {
  const installed = await npm(['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: __dirname, timeout: TIMEOUT })
  if (installed.code !== 0) console.error(`The packages to compare with could not be installed, and are left out:\n${installed.output}`)
}

/** One line that is written over, or, where it is not a terminal, a line for each group. */
function createProgress (version) {
  const begin = Date.now()
  return (group, share) => {
    const text = `Node ${version}  ${group}  ${Math.round(share * 100)} %  (${Math.round((Date.now() - begin) / 1000)} s)`
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}${share === 1 ? '\n' : ''}`)
    else if (share === 1) process.stderr.write(`${text}\n`)
  }
}

async function measure (node, figures, options) {
  const { stdout } = await runChild(node.path, ['-p', 'process.versions.v8'])
  const where = { ...machine.describe(), v8: stdout.trim(), rounds: options.rounds }
  const { samples, failures, errors } = await run(node, figures, options, createProgress(node.version))
  const values = {}
  for (const figure of figures) if (samples[figure.id] !== undefined) values[figure.id] = summarise(figure, samples[figure.id])
  for (const error of errors) console.error(`Node ${node.version}: ${error}`)
  if (errors.length > 0) process.exitCode = 1
  return { result: { machine: where, figures: values, failures }, complete: errors.length === 0 }
}

async function main () {
  const options = argumentsOf(USAGE, OPTIONS)
  const figures = select(options.only)
  await setup.run()
  if (figures.some(({ peers }) => peers !== undefined)) await installPeers()
  await withScratch(async installed => {
    if (figures.some(({ group }) => group === 'start' || group === 'bystanders')) await install(installed)
    await measureAll(figures, { ...options, installed })
  })
}

async function measureAll (figures, options) {
  const results = {}
  for (const wanted of options.node) {
    const node = await nodes.get(wanted)
    if (node.skipped) {
      console.error(`Node ${node.version}: skipped, ${node.skipped}`)
      continue
    }
    if (options.portable) results[node.version] = await measurePortable(node, figures, options)
    else results[node.version] = await measureNormal(node, figures, options)
  }
  if (options.json) console.log(JSON.stringify(results, null, 2))
}

async function measureNormal (node, figures, options) {
  const { result, complete } = await measure(node, figures, options)
  if (!options.json) show(node, options, [table.main(result.figures), table.peers(result.figures, result.failures), table.bystanders(result.figures)])
  if (complete && options.only === undefined && !options.quick) {
    report.save(node.version, result)
    console.error(`written: ${path.relative(process.cwd(), path.join(__dirname, 'RESULTS.md'))}`)
  }
  return result
}

/** Both kinds of code, group after group, so that a change of the machine's speed disturbs few of the comparisons. Nothing is written. */
async function measurePortable (node, figures, options) {
  const kinds = { normal: {}, portable: {} }
  // The others are not about JavaScript.
  for (const name of new Set(figures.map(({ group }) => group).filter(group => group !== 'size' && group !== 'agents'))) {
    const group = figures.filter(({ group }) => group === name)
    for (const kind of Object.keys(kinds)) {
      const { result } = await measure(node, group, { ...options, portable: kind === 'portable' })
      Object.assign(kinds[kind], result.figures)
    }
  }
  if (!options.json) show(node, options, [table.portable(kinds.normal, kinds.portable)])
  return kinds
}

function show (node, { quick }, parts) {
  console.log(`\nNode ${node.version}${quick ? ' (--quick: a trial, of which no figure means anything)' : ''}\n`)
  for (const part of parts) if (part !== undefined) console.log(`${part}\n`)
}

command(main)
