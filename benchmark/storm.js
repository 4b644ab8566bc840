'use strict'

// The long form of __test__/async-lock-storm.test.js: see __test__/fixtures/lock-storm.js for what happens in a storm over
// some locks, and what must hold.
//
//   node benchmark/storm.js [--seconds 60] [--seed N] [--node 14.21.3[,..] | all] [--subject force] [--jobs 1]
//
// --node     on these instead of the Node that runs this: full versions, major ones, or all that the package is tested on
// --subject  export, installed or force (see __test__/subject.js)
// --jobs     how many run at the same time
//
// Prints the seeds; the same seed makes the same threads try the same things. Exit code 0 only if every storm has ended well.
// Node 16 or newer.

const path = require('path')
const { run } = require('../scripts/lib/child')
const nodes = require('../scripts/nodes')

const STORM = path.join(__dirname, '..', '__test__', 'fixtures', 'lock-storm.js')
/** A storm finds out itself when somebody is forgotten; this is for a process that hangs altogether. Milliseconds. */
const GRACE = 120000

function parse (args) {
  const options = { seconds: 60, seed: (Date.now() & 0xffffff) + 1, node: 'current', subject: 'force', jobs: 1 }
  while (args.length > 0) {
    const name = args.shift().replace(/^--/, '')
    const value = args.shift()
    if (!(name in options) || value === undefined) throw new Error(`what is --${name}? There are ${Object.keys(options).map(each => `--${each}`).join(', ')}`)
    options[name] = typeof options[name] === 'number' ? Number(value) : value
    if (typeof options[name] === 'number' && !(options[name] > 0)) throw new Error(`--${name} must be a number greater than 0`)
  }
  return options
}

async function storm (version, { seconds, seed, subject }) {
  const node = await nodes.get(version)
  if (node.skipped) return { version: node.version, problem: null, text: `skipped: ${node.skipped}` }
  const env = { ...process.env, SUBJECT: subject }
  delete env.NODE_OPTIONS
  const ended = await run(node.path, [...node.flags, STORM, '--seconds', String(seconds), '--seed', String(seed)], {
    env, timeout: seconds * 1000 + GRACE
  })
  const last = ended.stdout.trim().split('\n').pop()
  const problem = ended.timedOut ? 'it hung' : ended.code !== 0 ? `it ended with ${ended.signal || `exit code ${ended.code}`}` : null
  return { version: node.version, problem, text: problem ? ended.output : last }
}

async function main () {
  const options = parse(process.argv.slice(2))
  const versions = options.node === 'all' ? [...nodes.versions] : options.node.split(',')
  console.log(`storms of ${options.seconds} s, first seed ${options.seed}, subject ${options.subject}`)
  let failed = 0
  const lane = async () => {
    while (versions.length > 0) {
      const { version, problem, text } = await storm(versions.shift(), options)
      if (problem) failed++
      console.log(`Node ${version}: ${problem ? `FAILED, ${problem}\n${text}` : text}`)
    }
  }
  await Promise.all(Array.from({ length: options.jobs }, lane))
  process.exitCode = failed > 0 ? 1 : 0
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
