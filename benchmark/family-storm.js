'use strict'

// The long form of __test__/family-storm.test.js, on any number of Node versions, one after the other: see
// __test__/fixtures/family-storm.js for what happens in it and what must hold.
//
//   node benchmark/family-storm.js [--seconds 60] [--seed N] [--node 14.21.3[,..] | all] [--subject export]
//
// --node     full versions, major ones, current (the Node that runs this, unless given), or all that the package is tested on
// --subject  export, installed or force (see __test__/subject.js)
//
// Prints the seed; the same seed makes the same threads try the same things. Exit code 0 only if every storm has ended well.
// Node 16 or newer.

const path = require('path')
const { run } = require('../scripts/lib/child')
const nodes = require('../scripts/nodes')

const FILE = path.join(__dirname, '..', '__test__', 'family-storm.test.js')
/** What a storm may take for its beginning, its end, and for noticing that nothing moves. Seconds. */
const GRACE = 90

const checks = {
  seconds: text => Number(text) > 0,
  seed: text => Number.isInteger(Number(text)),
  node: text => /^(all|current|\d+(\.\d+\.\d+)?)(,(current|\d+(\.\d+\.\d+)?))*$/.test(text),
  subject: text => ['export', 'installed', 'force'].includes(text)
}

function optionsOf (args) {
  const options = { seconds: '60', seed: String(Date.now() % 1e9), node: 'current', subject: 'export' }
  for (let n = 0; n < args.length; n += 2) {
    const name = args[n].replace(/^--/, '')
    if (!Object.keys(checks).includes(name)) throw new Error(`${args[n]}: there are ${Object.keys(checks).map(each => `--${each}`).join(', ')}`)
    if (args[n + 1] === undefined || !checks[name](args[n + 1])) throw new Error(`${args[n]}: not ${args[n + 1]}`)
    options[name] = args[n + 1]
  }
  return options
}

/** What came of it in one line, or how it failed. */
function verdict ({ code, signal, timedOut, stdout, output }) {
  const totals = /^# (\{"steps".*\})$/m.exec(stdout)
  if (timedOut) return { failed: true, text: `FAILED, it hung\n${output}` }
  if (code !== 0) return { failed: true, text: `FAILED, it ended with ${signal || `exit code ${code}`}\n${output}` }
  if (totals === null) return { failed: true, text: `FAILED, it does not say what has happened\n${output}` }
  const counts = JSON.parse(totals[1])
  return { failed: false, text: Object.keys(counts).map(name => `${counts[name]} ${name}`).join(', ') }
}

async function main () {
  const { seconds, seed, node, subject } = optionsOf(process.argv.slice(2))
  console.log(`storms of ${seconds} s, seed ${seed}, subject ${subject}`)
  for (const version of node === 'all' ? nodes.versions : node.split(',')) {
    const found = await nodes.get(version)
    if (found.skipped) {
      console.log(`Node ${found.version}: skipped, ${found.skipped}`)
      continue
    }
    const env = { ...process.env, SUBJECT: subject }
    // Meant for the Node that runs this.
    delete env.NODE_OPTIONS
    const args = [...found.flags, FILE, '--seconds', seconds, '--seed', seed]
    const { failed, text } = verdict(await run(found.path, args, { env, timeout: (Number(seconds) + GRACE) * 1000 }))
    console.log(`Node ${found.version}: ${text}`)
    if (failed) process.exitCode = 1
  }
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
