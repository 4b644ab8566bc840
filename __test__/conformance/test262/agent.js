'use strict'

// An agent: the worker in which the script of `$262.agent.start` runs, as a script, in the worker's own realm, after
// the entry point has been loaded. Runs on every Node that the package supports.

const fs = require('fs')
const { parentPort, workerData } = require('worker_threads')
const host = require('./host')

const { number, source, entry, reports, state } = workerData
const hasLeft = () => Atomics.load(state, host.STATE) === host.HAS_LEFT

process.on('uncaughtException', error => {
  // It will not do what the test waits for: said now, instead of after the timeout. The main thread may be in the midst
  // of the test.
  host.conclude('failed', `agent ${number} threw ${host.describe(error)}`)
  process.kill(process.pid, 'SIGKILL')
})
process.on('unhandledRejection', error => {
  host.print(`agent ${number}: unhandled rejection of ${host.describe(error)}`)
})
process.on('exit', () => {
  if (hasLeft()) return
  host.print(`agent ${number} has ended without $262.agent.leaving()`)
  Atomics.store(state, host.STATE, host.HAS_LEFT)
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
    Atomics.add(state, host.RETRIEVED, 1)
    holdOrRelease()
    receiver(buffer, id)
  }
}

const hold = !host.holdsEventLoop(entry, host.loadEntry(entry))

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
  sleep: host.sleep,
  leaving () {
    Atomics.store(state, host.STATE, host.HAS_LEFT)
    holdOrRelease()
  },
  monotonicNow: host.monotonicNow
}

host.define('print', message => { host.print(`agent ${number}: ${message}`) })
host.define('$262', { agent, global })
Atomics.store(state, host.STATE, host.RUNS)
host.evaluate(source, `agent ${number}`)
holdOrRelease()
