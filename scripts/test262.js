'use strict'

// npm run test262 -- --dir CHECKOUT: test262's tests of Atomics.wait, waitAsync and notify, on any Node, with any entry
// point of the package. Each test runs in a process of its own, in sloppy and in strict mode, as test262's
// INTERPRETING.md says; the time constants of its harness are left as they are.

const path = require('path')
const { argumentsOf, command, folder, list, someOf, whole } = require('./lib/arguments')
const versions = require('./nodes')
const setup = require('./setup')
const { collectTests } = require('./test262/checkout')
const { runTests } = require('./test262/run')
const { summaryLine, details, markdown, count } = require('./test262/report')

const ENTRIES = ['force', 'index', 'pure', 'keep-alive', 'host']

const USAGE = `
npm run test262 -- --dir CHECKOUT [options]

  --dir CHECKOUT     a checkout of https://github.com/tc39/test262
  --node LIST        versions, or paths of binaries, with commas between; 'all': every supported version (default: this Node)
  --entry LIST       ${ENTRIES.join(', ')} (default: force)
                     pure: through its install({ force: true }); host: without the package, for comparison
  --only TEXT        only the tests that have TEXT in their path
  --jobs N           tests at a time (default: 2)
  --repeat N         runs of each test and mode (default: 1)
  --timeout SECONDS  for one run, after which it has failed (default: 60)
  --flags LIST       flags for the Node under test, with commas between
  --markdown         the table of docs/conformance.md, at the end
`

const OPTIONS = {
  dir: { type: 'string', default: '', read: folder },
  node: { type: 'string', default: 'current', read: versions.read },
  entry: { type: 'string', default: 'force', read: someOf(ENTRIES) },
  only: { type: 'string', default: '' },
  jobs: { type: 'string', default: '2', read: whole },
  repeat: { type: 'string', default: '1', read: whole },
  timeout: { type: 'string', default: '60', read: whole },
  flags: { type: 'string', default: '', read: list },
  markdown: { type: 'boolean', default: false }
}

async function main () {
  const values = argumentsOf(USAGE, OPTIONS)
  const tests = collectTests(values.dir, { only: values.only })
  const { jobs, repeat, flags } = values
  const options = { jobs, repeat, timeout: values.timeout * 1000, flags, onProgress: progress }
  const say = text => { if (text !== '') console.log(text) }
  await setup.run()

  const runs = []
  for (const version of values.node) {
    const node = await versions.get(version)
    if (node.skipped) {
      say(`Node ${node.version}: skipped: ${node.skipped}`)
      continue
    }
    for (const name of values.entry) {
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
  if (values.markdown) say('\n' + markdown(runs))
  if (runs.length === 0 || runs.some(run => count(run, 'failed') > 0)) process.exitCode = 1
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

command(main)
