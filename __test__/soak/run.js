'use strict'

// `npm run soak`: a random program over everything that the package exports, for as long as it is told, which checks
// the laws of the package all the time. Threads come and go in every way, processes end in the midst of it, and this
// one stops and continues the process that is soaked.
//
//   npm run soak -- [--minutes 10] [--seed N] [--node 14,20.20.2 | all] [--only locks,names]
//
// --only   operations of these files of operations/ only: races are met sooner; `memory`: four processes at random on
//          memory that they share, which run for the same time after the others, where this Node has it
// --node   on these, one after the other, instead of the Node that runs this
//
// Prints the seed; the same seed makes the same threads try the same things, in whatever order the machine runs them.
// Exit code 0 only if no law was broken; otherwise it is printed what the threads were at. Node 20.19 or newer; POSIX
// for stopping the process.

const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { argumentsOf, command, positive, someOf, whole } = require('../../scripts/lib/arguments')
const { run } = require('../../scripts/lib/child')
const { Results } = require('../../scripts/lib/results')
const nodes = require('../../scripts/nodes')
const setup = require('../../scripts/setup')

const MAIN = path.join(__dirname, 'main.js')
/** Of several processes; it has a program of its own. */
const MEMORY = 'memory'
const MODEL = path.join(__dirname, '..', 'shared-memory', 'random.test.js')
const GROUPS = ['values', 'locks', 'names', 'files', 'queues', 'messages', MEMORY]
/** How long it may take to end a round. Milliseconds. */
const GRACE = 90000

const OPTIONS = {
  minutes: { type: 'string', default: '10', read: positive },
  seed: { type: 'string', default: String(1 + Date.now() % 1e6), read: whole },
  node: { type: 'string', default: 'current', read: nodes.read },
  only: { type: 'string', default: GROUPS.join(), read: someOf(GROUPS) }
}

/** Stops and continues a process at random moments, until `isOver()`. */
async function stopAndGo (pid, isOver) {
  const signal = name => {
    try {
      process.kill(-pid, name)
    } catch {
      // It has ended.
    }
  }
  const pause = milliseconds => sleep(milliseconds, undefined, { ref: false })
  for (;;) {
    await pause(2000 + Math.random() * 8000)
    if (isOver() || process.platform === 'win32') return
    signal('SIGSTOP')
    await pause(Math.random() ** 3 * 2000)
    signal('SIGCONT')
  }
}

/** Runs a program for so many milliseconds, and what it takes to end; an error says what was wrong. */
async function runFor (milliseconds, node, args, onStart) {
  const { code, signal, timedOut, stdout } = await run(node.path, [...node.flags, ...args], {
    // Options are meant for the Node that runs this.
    env: { ...process.env, NODE_OPTIONS: undefined },
    timeout: milliseconds,
    echo: 'all',
    onStart
  })
  if (timedOut) throw new Error('it hangs')
  if (code !== 0) throw new Error(`it ended with ${signal || `exit code ${code}`}`)
  return stdout
}

/** Runs one soak. */
async function soak (node, milliseconds, seed, only) {
  let hasEnded = false
  const args = ['--expose-gc', MAIN, String(milliseconds / 1000), String(seed), only.join()]
  const stdout = await runFor(milliseconds + GRACE, node, args, pid => { stopAndGo(pid, () => hasEnded) })
    .finally(() => { hasEnded = true })
  // The summary.
  if (!/^\{.*\}\n$/m.test(stdout)) throw new Error('it did not end as it should')
  return 'no law was broken'
}

/** Runs the random model of shared memory. */
async function soakMemory (node, minutes) {
  const stdout = await runFor(minutes * 60000 + 5 * GRACE, node, [MODEL, '--minutes', String(minutes)])
  return /"passed":0/.test(stdout) ? 'this Node has none' : 'no law was broken'
}

async function main () {
  const { minutes, seed, only, node: versions } = argumentsOf(__filename, OPTIONS)
  await setup.run()
  const results = new Results()
  await nodes.each(versions, async node => {
    const name = `Node ${node.version}: ${minutes} minutes, seed ${seed}`
    console.log(name)
    const ofThreads = only.filter(group => group !== MEMORY)
    if (ofThreads.length > 0) await results.of(name, () => soak(node, minutes * 60000, seed, ofThreads))
    if (only.includes(MEMORY) && parseInt(node.version) >= 16) {
      await results.of(`${name}, shared memory`, () => soakMemory(node, minutes))
    }
  })
  results.close()
}

command(main)
