'use strict'

/**
 * The Workers of this thread that an install reaches, until their end. Each of them may come to notify, so they hold
 * pending waits, and with these the event loop, before they have loaded the native library.
 *
 * A worker's end is noticed by a wrapper around Node's own handler, not by an 'exit' listener: users count
 * listeners, and remove all of them.
 */

const { shared } = require('../util/worker-threads')

const { apply } = Reflect
const { getOwnPropertySymbols } = Object

/**
 * The state that all copies of the package in this thread share. One of them reaches the Workers, and
 * another one may have the agent.
 * - `started`: the `threadId`s of the Workers that have not ended
 * - `binding`: undefined until this thread has an agent
 */
const state = shared('starting-workers', () => ({ started: new Set(), binding: undefined }))

/** Adds a new worker, which will load an entry. */
exports.add = function add (worker) {
  const { threadId } = worker
  const { started } = state
  // It has ended already, or was never started.
  if (!(threadId > 0)) return
  started.add(threadId)
  if (state.binding !== undefined) state.binding.workerStarts(threadId)
  whenEnded(worker, () => {
    started.delete(threadId)
    if (state.binding !== undefined) state.binding.workerEnded(threadId)
  })
}

/** Reports the Workers to native code, and from now on each change. */
exports.report = function report (binding) {
  if (state.binding !== undefined) return
  state.binding = binding
  state.started.forEach((threadId) => binding.workerStarts(threadId))
}

/** Warns of a worker that an install does not reach. */
exports.warn = (text) => process.emitWarning(text, { code: 'ATOMICS_WAITASYNC_WORKER' })

function whenEnded (worker, callback) {
  const handle = getOwnPropertySymbols(worker).map((symbol) => worker[symbol]).find(isHandle)
  if (handle === undefined) {
    worker.once('exit', callback)
    return
  }
  const { onexit } = handle
  handle.onexit = function () {
    callback()
    return apply(onexit, this, arguments)
  }
}

const isHandle = (value) => typeof value === 'object' && value !== null && typeof value.onexit === 'function'
