'use strict'

// npm run test262 -- --dir CHECKOUT: test262's tests of Atomics.wait, waitAsync and notify, on any Node, with any entry
// point of the package. Each test runs in a process of its own, in sloppy and in strict mode, as test262's
// INTERPRETING.md says; the time constants of its harness are left as they are.

const path = require('path')
const { parseArgs } = require('util')
const { askedNodes, list } = require('./lib/asked-nodes')
const setup = require('./setup')
const { collectTests } = require('./test262/checkout')
const { runTests } = require('./test262/run')
const { summaryLine, details, markdown, count } = require('./test262/report')

const ENTRIES = ['force', 'index', 'pure', 'keep-alive', 'host']

const USAGE = `npm run test262 -- --dir CHECKOUT [options]

  --dir CHECKOUT     a checkout of https://github.com/tc39/test262
  --node LIST        versions, or paths of binaries, with commas between; 'all': every supported version (default: this Node)
  --entry LIST       ${ENTRIES.join(', ')} (default: force)
                     pure: through its install({ force: true }); host: without the package, for comparison
  --only TEXT        only the tests that have TEXT in their path
  --jobs N           tests at a time (default: 2)
  --repeat N         runs of each test and mode (default: 1)
  --timeout SECONDS  for one run, after which it has failed (default: 60)
  --flags LIST       flags for the Node under test, with commas between
  --json             the results as JSON, and nothing else, on standard output
  --markdown         the table of docs/conformance.md, at the end
`

const OPTIONS = {
  dir: { type: 'string' },
  node: { type: 'string', default: 'current' },
  entry: { type: 'string', default: 'force' },
  only: { type: 'string', default: '' },
  jobs: { type: 'string', default: '2' },
  repeat: { type: 'string', default: '1' },
  timeout: { type: 'string', default: '60' },
  flags: { type: 'string', default: '' },
  json: { type: 'boolean', default: false },
  markdown: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false }
}

async function main () {
  const { values } = parseArgs({ options: OPTIONS })
  if (values.help) {
    process.stdout.write(USAGE)
    return
  }
  if (values.dir === undefined) throw new Error(`--dir is missing\n\n${USAGE}`)
  const entries = list(values.entry)
  const unknown = entries.find(name => !ENTRIES.includes(name))
  if (unknown !== undefined || entries.length === 0) throw new Error(`--entry ${values.entry}: one or more of ${ENTRIES.join(', ')} are allowed`)

  const tests = collectTests(path.resolve(values.dir), { only: values.only })
  const options = {
    jobs: positive('jobs', values.jobs),
    repeat: positive('repeat', values.repeat),
    timeout: positive('timeout', values.timeout) * 1000,
    flags: list(values.flags),
    onProgress: progress
  }
  const say = values.json ? () => {} : text => { if (text !== '') console.log(text) }
  await setup.run()
  const { nodes, missing } = await askedNodes(values.node)
  for (const { version, reason } of missing) say(`Node ${version}: skipped: ${reason}`)
  if (nodes.length === 0) throw new Error('there is no Node to run the tests on')

  const runs = []
  for (const node of nodes) {
    for (const name of entries) {
      try {
        const run = await runTests(node, entryOf(name), tests, options)
        clearProgress()
        say(summaryLine(run))
        say(details(run))
        runs.push(run)
      } catch (error) {
        clearProgress()
        console.error(error.message)
        process.exitCode = 1
      }
    }
  }
  if (values.json) console.log(JSON.stringify({ runs, missing }, null, 2))
  if (values.markdown) say('\n' + markdown(runs))
  if (runs.some(run => count(run, 'failed') > 0)) process.exitCode = 1
}

function positive (name, text) {
  const number = Number(text)
  if (!(Number.isInteger(number) && number > 0)) throw new Error(`--${name} ${text}: a whole number above 0 is allowed`)
  return number
}

function entryOf (name) {
  return name === 'host' ? null : { name, file: path.join(__dirname, '..', `${name}.js`) }
}

function progress (done, all, failed) {
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${all} runs, ${failed} failing `)
}

function clearProgress () {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
