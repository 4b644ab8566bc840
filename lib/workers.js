'use strict'

/**
 * Sees to it that every Worker which this thread starts from an install on has that install too, before any code of
 * its own: otherwise a plain `Atomics.notify` in a worker would wake nobody, and nobody would notice.
 *
 * There are two ways into a worker. `worker-flags.js` goes by what is documented (a `-r` flag) and is taken wherever it
 * can be; `worker-message.js` reaches the rest: Node before 23, and whoever took hold of `Worker` before the install.
 */

const path = require('path')
const flags = require('./worker-flags')
const message = require('./worker-message')
const { hostWorker, threads, unwrap } = require('./worker-threads')

/** What each kind of install gives to the workers of this thread: the entry that they load before anything else. */
const ENTRY_OF = {
  addon: path.join(__dirname, '..', 'force.js'),
  host: path.join(__dirname, '..', 'keep-alive.js')
}

/** The entries that workers load, of all installs that have not been undone; the latest counts. */
const entries = []

/** For the worker that is being started. */
function currentEntry () {
  flags.checkEnvironment()
  return entries[entries.length - 1]
}

/**
 * @param {'addon' | 'host'} engine the queue that workers shall use
 * @returns {() => void} undoes it, as far as nobody else has come in between
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine) {
  const entry = ENTRY_OF[engine]
  const HostWorker = hostWorker()
  if (HostWorker === undefined) return () => {}
  const undo = [message.intercept(HostWorker, currentEntry)]
  if (flags.supported) undo.push(replaceWorker(flags.wrap(unwrap(threads.Worker), HostWorker, currentEntry)))
  entries.push(entry)
  return () => {
    entries.splice(entries.lastIndexOf(entry), 1)
    undo.forEach((step) => step())
    if (entries.length === 0) flags.leaveEnvironment()
  }
}

function replaceWorker (Replacement) {
  const Before = threads.Worker
  // Unless it is read-only; then all are reached by message.
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
