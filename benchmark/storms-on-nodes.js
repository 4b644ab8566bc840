'use strict'

// Storms on any number of Node versions: what benchmark/storm.js and benchmark/family-storm.js have in common.
//
//   [--seconds 60] [--seed N] [--node 14.21.3[,..] | all] [--subject force] [--jobs 1]
//
// --node     on these instead of the Node that runs this: full versions, major ones, or all that the package is tested on
// --subject  export, installed or force (see __test__/subject.js)
// --jobs     how many run at the same time
//
// Prints the seed; the same seed makes the same threads try the same things. Exit code 0 only if every storm has ended well.
// Node 16 or newer.

const { run } = require('../scripts/lib/child')
const nodes = require('../scripts/nodes')
const { SUBJECTS } = require('../scripts/lib/test-file')

/** A storm finds out itself when somebody is forgotten; this is for a process that hangs altogether. Milliseconds. */
const GRACE = 120000

const isAmount = (text) => Number(text) > 0
const checks = {
  seconds: isAmount,
  seed: text => Number.isInteger(Number(text)),
  node: text => /^(all|(current|\d+(\.\d+\.\d+)?)(,(current|\d+(\.\d+\.\d+)?))*)$/.test(text),
  subject: text => SUBJECTS.includes(text),
  jobs: text => isAmount(text) && Number.isInteger(Number(text))
}

function optionsOf (args, subject) {
  const options = { seconds: '60', seed: String(1 + Date.now() % 1e9), node: 'current', subject, jobs: '1' }
  for (let n = 0; n < args.length; n += 2) {
    const name = args[n].replace(/^--/, '')
    if (!Object.keys(checks).includes(name)) throw new Error(`${args[n]}: there are ${Object.keys(checks).map(each => `--${each}`).join(', ')}`)
    if (args[n + 1] === undefined || !checks[name](args[n + 1])) throw new Error(`${args[n]}: not ${args[n + 1]}`)
    options[name] = args[n + 1]
  }
  return options
}

/** One storm: `{ version, failed, text }`, where `text` is what came of it in one line, or how it failed. */
async function storm (file, summary, version, { seconds, seed, subject }) {
  const node = await nodes.get(version)
  if (node.skipped) return { version: node.version, failed: false, text: `skipped: ${node.skipped}` }
  const env = { ...process.env, SUBJECT: subject }
  // Meant for the Node that runs this.
  delete env.NODE_OPTIONS
  const args = [...node.flags, file, '--seconds', seconds, '--seed', seed]
  const { code, signal, timedOut, stdout, output } = await run(node.path, args, { env, timeout: Number(seconds) * 1000 + GRACE })
  const text = summary(stdout)
  const problem = timedOut ? 'it hung'
    : code !== 0 ? `it ended with ${signal || `exit code ${code}`}`
      : text === undefined ? 'it does not say what has happened' : undefined
  return { version: node.version, failed: problem !== undefined, text: problem === undefined ? text : `FAILED, ${problem}\n${output}` }
}

/**
 * @param {string} file what is run, with --seconds and --seed
 * @param {string} subject unless another one is given
 * @param {(stdout: string) => string | undefined} summary finds what came of it
 */
async function main (file, subject, summary) {
  const options = optionsOf(process.argv.slice(2), subject)
  const versions = options.node === 'all' ? [...nodes.versions] : options.node.split(',')
  console.log(`storms of ${options.seconds} s, seed ${options.seed}, subject ${options.subject}`)
  const lane = async () => {
    while (versions.length > 0) {
      const { version, failed, text } = await storm(file, summary, versions.shift(), options)
      if (failed) process.exitCode = 1
      console.log(`Node ${version}: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: Number(options.jobs) }, lane))
}

module.exports = (...args) => main(...args).catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
