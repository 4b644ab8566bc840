'use strict'

// npm run test262 -- --dir CHECKOUT: test262's tests of Atomics.wait, waitAsync and notify, on any Node, with any entry
// point of the package. Each test runs in a process of its own, in sloppy and in strict mode, as test262's
// INTERPRETING.md says; the time constants of its harness are left as they are.

const path = require('path')
const { argumentsOf, command, folder, someOf, whole } = require('./lib/arguments')
const { run } = require('./lib/child')
const { inParallel } = require('./lib/in-parallel')
const { withScratch } = require('./lib/scratch')
const nodes = require('./nodes')
const setup = require('./setup')
const { PREFIX } = require('./test262/host')
const { collectTests } = require('./test262/tests')

const ENTRIES = ['force', 'index', 'pure', 'keep-alive', 'host']
const OUTPUT_KEPT = 4000

const USAGE = `
npm run test262 -- --dir CHECKOUT [options]

  --dir CHECKOUT     a checkout of https://github.com/tc39/test262
  --node LIST        versions, or paths of binaries, with commas between; 'all': every supported version (default: this Node)
  --entry LIST       ${ENTRIES.join(', ')} (default: force)
                     pure: through its install({ force: true }); host: without the package, for comparison
  --only TEXT        only the tests that have TEXT in their path
  --jobs N           tests at a time (default: 2)
  --timeout SECONDS  for one run, after which it has failed (default: 60)
`

const OPTIONS = {
  dir: { type: 'string', default: '', read: folder },
  node: { type: 'string', default: 'current', read: nodes.read },
  entry: { type: 'string', default: 'force', read: someOf(ENTRIES) },
  only: { type: 'string', default: '' },
  jobs: { type: 'string', default: '2', read: whole },
  timeout: { type: 'string', default: '60', read: whole }
}

async function main () {
  const options = argumentsOf(USAGE, OPTIONS)
  const tests = collectTests(options.dir, options.only)
  await setup.run()
  const runs = []
  await nodes.each(options.node, async node => {
    for (const entry of options.entry) {
      runs.push({ node: node.version, entry, results: await withScratch(scratch => runTests(node, entry, tests, options, scratch)) })
      report(runs[runs.length - 1])
    }
  })
  console.log('\n' + markdown(runs))
  if (runs.length === 0 || runs.some(({ results }) => count(results, 'failed') > 0)) process.exitCode = 1
}

/** Gives for each test `{ name, status, messages }`: those of the runs that failed, or why it was skipped. */
async function runTests (node, entry, tests, { jobs, timeout }, scratch) {
  const results = tests.map(({ name }) => ({ name, status: 'passed', messages: new Set() }))
  const tasks = tests.flatMap((test, index) => test.skipped ? [] : test.modes.map(mode => async () => {
    const job = { ...test, entry, strict: mode === 'strict', reports: path.join(scratch, `${index}-${mode}`) }
    const { status, message } = await runJob(node, job, timeout * 1000)
    if (status === 'passed') return
    if (results[index].status !== 'failed') results[index].status = status
    results[index].messages.add(status === 'failed' ? `${mode}: ${message}` : message)
  }))
  tests.forEach(({ skipped }, index) => {
    if (skipped) Object.assign(results[index], { status: 'skipped', messages: new Set([skipped]) })
  })
  await inParallel(tasks, jobs)
  return results
}

/** Runs a test in one mode: what it says of itself, unless its process ends otherwise than one whose test has passed. */
async function runJob (node, job, timeout) {
  const env = { ...process.env, NODE_OPTIONS: '' }
  const { output, code, signal, timedOut } = await run(node.path, [...node.flags, path.join(__dirname, 'test262', 'main.js'), JSON.stringify(job)], { env, timeout })
  const lines = output.split('\n').filter(line => line !== '')
  const [verdict] = lines.filter(line => line.startsWith(PREFIX)).map(line => JSON.parse(line.slice(PREFIX.length)))
  const printed = lines.filter(line => !line.startsWith(PREFIX)).join('\n').slice(-OUTPUT_KEPT)
  const how = timedOut ? `not ended after ${timeout / 1000} s` : `ended with ${signal || `exit code ${code}`}`
  if (verdict === undefined) return { status: 'failed', message: `no result, and its process has ${how}\n${printed}` }
  if (verdict.status === 'failed') return { status: 'failed', message: `${verdict.message}\n${printed}` }
  return timedOut || code !== 0 ? { status: 'failed', message: `${verdict.status}, but its process has ${how}\n${printed}` } : verdict
}

const count = (results, status) => results.filter(result => result.status === status).length
const counts = (results) => ['passed', 'failed', 'skipped'].map(status => count(results, status))

function report ({ node, entry, results }) {
  const [passed, failed, skipped] = counts(results)
  console.log(`Node ${node}, ${entry}: ${passed} passed, ${failed} failed, ${skipped} skipped`)
  for (const { name, messages } of results.filter(({ status }) => status === 'failed')) {
    console.log(`  FAILED ${name}\n${[...messages].join('\n').trim().replace(/^/gm, '      ')}`)
  }
}

/** From each reason to the names of the tests. */
function skippedBy (results) {
  const reasons = new Map()
  for (const { name, messages } of results.filter(({ status }) => status === 'skipped')) {
    const reason = [...messages].join('; ')
    reasons.set(reason, [...reasons.get(reason) || [], name])
  }
  return reasons
}

/** The table of docs/conformance.md: a row for each run, and under it what was skipped, why and where. */
function markdown (runs) {
  const skipped = new Map()
  for (const { node, results } of runs) {
    for (const [reason, names] of skippedBy(results)) {
      const text = `${reason}: ${names.map(name => `\`${name}\``).join(', ')}`
      skipped.set(text, [...skipped.get(text) || [], node])
    }
  }
  return [
    '| Node | entry point | passed | failed | skipped |',
    '|---|---|--:|--:|--:|',
    ...runs.map(({ node, entry, results }) => `| ${node} | \`${entry}\` | ${counts(results).join(' | ')} |`),
    '',
    ...Array.from(skipped, ([text, places]) => `- Node ${[...new Set(places)].join(', ')}: ${text}`)
  ].join('\n')
}

command(main)
