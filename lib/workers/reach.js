'use strict'

/**
 * Makes an install reach every Worker that this thread starts from then on, before any code of the worker's own runs. Otherwise a
 * plain `Atomics.notify` in a worker would wake no waiter of ours, unnoticed.
 *
 * Workers are reached by the message that starts them (`by-message/`): the one way that reaches all of them, on every Node, and
 * leaves their flags, environment and options alone. docs/environments.md says what it does in which situation.
 */

const path = require('path')
const { intercept } = require('./by-message/intercept')
const { hostWorker } = require('./host-worker')

/** By engine: the entry that workers load before anything else. */
const ENTRY_OF = {
  addon: path.join(__dirname, '..', '..', 'force.js'),
  host: path.join(__dirname, '..', '..', 'keep-alive.js')
}

/** The entries of all installs that have not been undone. Workers load the last one. */
const entries = []

/** For the worker that is being started. */
const currentEntry = () => entries[entries.length - 1]

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
  const leave = intercept(HostWorker, currentEntry)
  entries.push(entry)
  return () => {
    entries.splice(entries.lastIndexOf(entry), 1)
    leave()
  }
}
