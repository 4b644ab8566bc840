'use strict'

// `npm run test262 -- --dir CHECKOUT`: test262's tests of Atomics.wait, waitAsync and notify, on any Node, with any
// entry point of the package. Each test runs in a process of its own, in sloppy and in strict mode, as test262's
// INTERPRETING.md says; the time constants of its harness are left as they are.
//
// --dir      a checkout of https://github.com/tc39/test262
// --node     versions, or paths of binaries, with commas between; `all`: every supported version (this Node unless
//            given)
// --entry    some of force, index, pure, keep-alive, host (force unless given). pure: through its
//            install({ force: true }); host: without the package, for comparison: its failures do not count
// --only     the tests that have this text in their path
// --jobs     how many tests run at a time (2 unless given)
// --timeout  seconds for one run, after which it has failed (60 unless given)

const path = require('path')
const { argumentsOf, command, someOf, whole } = require('../../scripts/lib/arguments')
const { run } = require('../../scripts/lib/child')
const { OPTIONS: COMMON, conform } = require('./report')
const { inParallel } = require('../../scripts/lib/in-parallel')
const { withScratch } = require('../../scripts/lib/scratch')
const setup = require('../../scripts/setup')
const { PREFIX } = require('./test262/host')
const { collectTests } = require('./test262/tests')

const ENTRIES = ['force', 'index', 'pure', 'keep-alive', 'host']
const OUTPUT_KEPT = 4000

const OPTIONS = {
  ...COMMON,
  entry: { type: 'string', default: 'force', read: someOf(ENTRIES) },
  jobs: { type: 'string', default: '2', read: whole }
}

async function main () {
  const { timeout = 60, ...options } = argumentsOf(__filename, OPTIONS)
  const tests = collectTests(options.dir, options.only)
  await setup.run()
  await conform(options.node, options.entry, (node, entry) => withScratch(async scratch => {
    const results = []
    const take = (test, n) => async () => {
      results[n] = await runTest(node, { ...test, entry, scratch }, timeout * 1000)
    }
    await inParallel(tests.map(take), options.jobs)
    return results
  }))
}

/** Runs a test in its modes, until it fails in one. */
async function runTest (node, { scratch, ...test }, timeout) {
  const { name, modes, skipped } = test
  if (skipped) return { name, status: 'skipped', message: skipped }
  let result
  for (const mode of modes) {
    const reports = path.join(scratch, `${name.replace(/\W/g, '-')}-${mode}`)
    result = await runJob(node, { ...test, strict: mode === 'strict', reports }, timeout)
    if (result.status === 'failed') return { name, ...result, message: `${mode}: ${result.message}` }
  }
  return { name, ...result }
}

/**
 * Runs a test in one mode: what it says of itself, unless its process ends otherwise than one whose test has passed.
 */
async function runJob (node, job, timeout) {
  const env = { ...process.env, NODE_OPTIONS: '' }
  const { output, code, signal, timedOut } = await run(
    node.path,
    [...node.flags, path.join(__dirname, 'test262', 'main.js'), JSON.stringify(job)],
    { env, timeout }
  )
  const lines = output.split('\n').filter(line => line !== '')
  const [verdict] = lines.filter(line => line.startsWith(PREFIX)).map(line => JSON.parse(line.slice(PREFIX.length)))
  const printed = lines.filter(line => !line.startsWith(PREFIX)).join('\n').slice(-OUTPUT_KEPT)
  const how = timedOut ? `not ended after ${timeout / 1000} s` : `ended with ${signal || `exit code ${code}`}`
  if (verdict === undefined) return { status: 'failed', message: `no result, and its process has ${how}\n${printed}` }
  if (verdict.status === 'failed') return { status: 'failed', message: `${verdict.message}\n${printed}` }
  return timedOut || code !== 0
    ? { status: 'failed', message: `${verdict.status}, but its process has ${how}\n${printed}` }
    : verdict
}

command(main)
