'use strict'

// `$262.agent` of the main thread: starts agents on worker_threads, and talks to them without needing its event loop,
// which a test may block or spin for as long as it likes.

const path = require('path')
const { Worker, sleep } = require('./pristine')
const { createAgentState } = require('./agent-state')
const { createReportQueue } = require('./report-queue')
const { monotonicNow } = require('./realm')

const START_TIMEOUT = 30000

/**
 * @param {null | object} entry what `loadEntry` shall load in each agent before its script runs
 * @param {boolean} hold whether agents, running, keep this thread's event loop alive
 */
function createAgents (entry, hold) {
  const reports = createReportQueue()
  const agents = []

  return {
    start (source) {
      const state = createAgentState()
      const worker = new Worker(path.join(__dirname, 'agent.js'), {
        workerData: { number: agents.length, source: String(source), entry, state: state.buffer, reports: reports.buffer }
      })
      if (!hold) worker.unref()
      agents.push({ worker, state, sent: 0 })
      if (!state.waitUntilRunning(START_TIMEOUT)) throw new Error(`agent ${agents.length - 1} has not started within ${START_TIMEOUT} ms`)
    },
    broadcast (buffer, id) {
      const present = agents.filter(agent => !agent.state.hasLeft())
      present.forEach(agent => {
        agent.sent++
        agent.worker.postMessage({ buffer, id })
      })
      present.forEach(agent => agent.state.waitUntilRetrieved(agent.sent))
    },
    getReport () { return reports.receive() },
    sleep,
    monotonicNow
  }
}

module.exports = { createAgents }
