'use strict'

/**
 * Makes an install reach every Worker that this thread starts from then on, before any code of the worker's own runs. Otherwise a
 * plain `Atomics.notify` in a worker would wake no waiter of ours, unnoticed.
 *
 * There are two ways into a worker. `by-flag.js` uses what is documented (a `-r` flag) wherever it can. `by-message/` reaches the
 * rest: workers on Node before 23, and of code that took `Worker` before the install.
 */

const path = require('path')
const { threads } = require('../util/worker-threads')
const byFlag = require('./by-flag')
const { intercept } = require('./by-message/intercept')
const { hostWorker, unwrap } = require('./host-worker')

/** By engine: the entry that workers load before anything else. */
const ENTRY_OF = {
  addon: path.join(__dirname, '..', '..', 'force.js'),
  host: path.join(__dirname, '..', '..', 'keep-alive.js')
}

/** The entries of all installs that have not been undone. Workers load the last one. */
const entries = []

/** For the worker that is being started. */
function currentEntry () {
  byFlag.checkEnvironment()
  return entries[entries.length - 1]
}

/**
 * @param {'addon' | 'host'} engine the queue that workers will use
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine) {
  const entry = ENTRY_OF[engine]
  if (process.versions.bun || process.versions.deno) return require('./by-wrapping')(entry)
  const HostWorker = hostWorker()
  if (HostWorker === undefined) return () => {}
  const undo = [intercept(HostWorker, currentEntry)]
  if (byFlag.supported) undo.push(replaceWorker(byFlag.wrap(unwrap(threads.Worker), HostWorker, currentEntry)))
  entries.push(entry)
  return () => {
    entries.splice(entries.lastIndexOf(entry), 1)
    undo.forEach((step) => step())
    if (entries.length === 0) byFlag.leaveEnvironment()
  }
}

function replaceWorker (Replacement) {
  const Before = threads.Worker
  // If it is read-only, all workers are reached by message.
  if (!Reflect.set(threads, 'Worker', Replacement)) return () => {}
  // For `import { Worker } from 'worker_threads'`.
  const { syncBuiltinESMExports } = require('module')
  syncBuiltinESMExports()
  return () => {
    if (threads.Worker !== Replacement) return
    threads.Worker = Before
    syncBuiltinESMExports()
  }
}
