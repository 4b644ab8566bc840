'use strict'

// An agent: the worker in which the script of `$262.agent.start` runs, as a script, in the worker's own realm, after the
// entry point has been loaded.

const { parentPort, workerData, sleep } = require('./pristine')
const { attachAgentState } = require('./agent-state')
const { attachReportQueue } = require('./report-queue')
const { abort, note, describe } = require('./outcome')
const { loadEntry, holdsEventLoop } = require('./entry')
const { defineHost, monotonicNow } = require('./realm')
const { compile, run } = require('./script')

const who = 'agent ' + workerData.number
const state = attachAgentState(workerData.state)
const reports = attachReportQueue(workerData.reports)

// An agent that has thrown will not do what the test waits for: say so now, instead of after the time-out.
process.on('uncaughtException', error => { abort('failed', `${who} threw ${describe(error)}`) })
process.on('unhandledRejection', error => { note(`${who}: unhandled rejection of ${describe(error)}`) })
process.on('exit', () => {
  if (state.hasLeft()) return
  note(`${who} has ended without $262.agent.leaving()`)
  state.leave()
})

const broadcasts = []
const receivers = []

parentPort.on('message', broadcast => {
  broadcasts.push(broadcast)
  deliver()
})

function deliver () {
  while (broadcasts.length > 0 && receivers.length > 0) {
    const broadcast = broadcasts.shift()
    const receiver = receivers.shift()
    state.retrieved()
    holdOrRelease()
    receiver(broadcast.buffer, broadcast.id)
  }
}

let held = true

// The port keeps this thread's event loop alive while a broadcast is expected. After that only what is under test does,
// a pending waitAsync, where it is promised to: only the host's own needs the port until the agent leaves.
function holdOrRelease () {
  const hold = receivers.length > 0 || (held && !state.hasLeft())
  if (hold) parentPort.ref()
  else parentPort.unref()
}

function load () {
  try {
    held = !holdsEventLoop(workerData.entry, loadEntry(workerData.entry))
    return true
  } catch (error) {
    abort('unusable', `in ${who}: ${describe(error)}`)
    return false
  }
}

function start () {
  if (!load()) return

  defineHost(global, {
    agent: {
      receiveBroadcast (receiver) {
        receivers.push(receiver)
        holdOrRelease()
        setImmediate(deliver)
      },
      report (message) { reports.send(String(message)) },
      sleep,
      leaving () {
        state.leave()
        holdOrRelease()
      },
      monotonicNow
    },
    print (message) { note(`${who}: ${message}`) },
    onRealm () {}
  })

  const { script, syntaxError } = compile(workerData.source, who)
  if (script === null) {
    abort('unparsable', `a script for an agent: ${describe(syntaxError)}`)
    return
  }
  state.running()
  run(script)
  holdOrRelease()
}

start()
