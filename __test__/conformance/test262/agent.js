'use strict'

// An agent: the worker in which the script of `$262.agent.start` runs, as a script, in the worker's own realm, after the
// entry point has been loaded. Runs on every Node that the package supports.

const fs = require('fs')
const { parentPort, workerData } = require('worker_threads')
const { HAS_LEFT, RETRIEVED, RUNS, STATE, conclude, define, describe, evaluate, holdsEventLoop, loadEntry, monotonicNow, print, sleep } = require('./host')

const { number, source, entry, reports, state } = workerData
const hasLeft = () => Atomics.load(state, STATE) === HAS_LEFT

process.on('uncaughtException', error => {
  // It will not do what the test waits for: said now, instead of after the timeout. The main thread may be in the midst of the test.
  conclude('failed', `agent ${number} threw ${describe(error)}`)
  process.kill(process.pid, 'SIGKILL')
})
process.on('unhandledRejection', error => { print(`agent ${number}: unhandled rejection of ${describe(error)}`) })
process.on('exit', () => {
  if (hasLeft()) return
  print(`agent ${number} has ended without $262.agent.leaving()`)
  Atomics.store(state, STATE, HAS_LEFT)
})

const broadcasts = []
const receivers = []

parentPort.on('message', broadcast => {
  broadcasts.push(broadcast)
  deliver()
})

function deliver () {
  while (broadcasts.length > 0 && receivers.length > 0) {
    const { buffer, id } = broadcasts.shift()
    const receiver = receivers.shift()
    Atomics.add(state, RETRIEVED, 1)
    holdOrRelease()
    receiver(buffer, id)
  }
}

const hold = !holdsEventLoop(entry, loadEntry(entry))

// The port keeps this thread's event loop alive while a broadcast is expected. After that only what is under test does,
// a pending waitAsync, where it is promised to: only the host's own needs the port until the agent leaves.
function holdOrRelease () {
  if (receivers.length > 0 || (hold && !hasLeft())) parentPort.ref()
  else parentPort.unref()
}

const agent = {
  receiveBroadcast (receiver) {
    receivers.push(receiver)
    holdOrRelease()
    setImmediate(deliver)
  },
  report (message) { fs.appendFileSync(reports, JSON.stringify(String(message)) + '\n') },
  sleep,
  leaving () {
    Atomics.store(state, STATE, HAS_LEFT)
    holdOrRelease()
  },
  monotonicNow
}

define('print', message => { print(`agent ${number}: ${message}`) })
define('$262', { agent, global })
Atomics.store(state, STATE, RUNS)
evaluate(source, `agent ${number}`)
holdOrRelease()
