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
const { hostWorker, interpose } = require('./host-worker')

/** By what was installed, the engine of Atomics or the locks of navigator: the entry that workers load before anything else. */
const ENTRY_OF = {
  addon: path.join(__dirname, '..', '..', 'force.js'),
  host: path.join(__dirname, '..', '..', 'keep-alive.js'),
  locks: path.join(__dirname, '..', '..', 'web-locks.js')
}

/** The entries of all installs that have not been undone. */
const entries = []

/** For the worker that is being started: the last entry that concerns Atomics, and that of navigator. Undefined if there is none. */
function currentEntries () {
  const last = entries.filter((entry) => entry !== ENTRY_OF.locks).slice(-1)
  if (entries.includes(ENTRY_OF.locks)) last.push(ENTRY_OF.locks)
  return last.length === 0 ? undefined : last
}

/**
 * @param {'addon' | 'host' | 'locks'} engine the queue that workers will use; or that they get the locks
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine) {
  const entry = ENTRY_OF[engine]
  const HostWorker = hostWorker()
  const isOther = process.versions.bun || process.versions.deno
  if (HostWorker === undefined && !isOther) return () => {}
  const leave = isOther ? require('./by-wrapping')(currentEntries) : interpose(HostWorker, intercept(currentEntries))
  if (leave === undefined) throw new TypeError('install: workers must be false, because worker_threads.Worker is not extensible')
  entries.push(entry)
  return () => {
    entries.splice(entries.lastIndexOf(entry), 1)
    leave()
  }
}
