'use strict'

/**
 * Makes an install reach new Workers before their own code runs. Otherwise a plain `Atomics.notify` in a worker
 * would silently wake no waiter of ours.
 *
 * Workers are reached by the message that starts them (`by-message/`): the one way that reaches all of them, on every
 * Node, and leaves their flags, environment and options alone. docs/environments.md has the situations.
 */

const path = require('path')
const { intercept } = require('./by-message/intercept')
const { hostWorker, interpose, isInterposed } = require('./host-worker')
const startingWorkers = require('../../agent/starting-workers')
const shared = require('../../util/shared')
const { threads } = require('../../util/worker-threads')

const ROOT = path.join(__dirname, '..', '..', '..')

/**
 * The entry that workers load first, by the kind of install: an engine of Atomics, or the locks of navigator.
 */
const ENTRY_OF = {
  addon: path.join(ROOT, 'force', 'index.js'),
  host: path.join(ROOT, 'keep-alive', 'index.js'),
  locks: path.join(ROOT, 'web-locks', 'index.js')
}

/**
 * State of all copies in this thread: they share one replacement.
 * - `Atomics`, `navigator`: the installs that have not been undone, from the number of each to the entry that
 *   Workers load; the latest last
 * - `latest`: the number of the latest install
 * - `leave`: undoes the replacement
 */
const state = shared('reach', () => {
  return { Atomics: new Map(), navigator: new Map(), latest: 0, leave: undefined }
})

/** Lists the entries for a starting worker: Atomics' latest, and navigator's. Undefined if there is none. */
function currentEntries () {
  const entries = lastOf(state.Atomics).concat(lastOf(state.navigator))
  return entries.length === 0 ? undefined : entries
}

const lastOf = (entries) => Array.from(entries.values()).slice(-1)

/**
 * @param {'addon' | 'host' | 'locks'} engine the queue that workers will use; 'locks': they get `navigator.locks`
 * @param {boolean} isAtLoad whether an entry asks, which is being loaded: then there is a warning instead of an error
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine, isAtLoad) {
  const HostWorker = hostWorker()
  const isOther = process.versions.bun || process.versions.deno
  if (HostWorker === undefined && !isOther) {
    if (threads !== undefined) {
      warn('other code has replaced worker_threads.Worker, and Node\'s class is not found behind it')
    }
    return () => {}
  }
  const leave = isOther ? require('./by-wrapping')(currentEntries) : reachByMessage(HostWorker)
  if (leave === undefined) {
    const problem = 'worker_threads.Worker is not extensible'
    if (!isAtLoad) throw new TypeError('install: workers must be false, because ' + problem)
    warn(problem)
    return () => {}
  }
  const entries = engine === 'locks' ? state.navigator : state.Atomics
  const number = ++state.latest
  entries.set(number, ENTRY_OF[engine])
  return () => {
    entries.delete(number)
    leave()
  }
}

/**
 * Replaces the parent of Node's class, unless an install has done so. Returns a function that undoes that once all
 * installs have been undone.
 */
function reachByMessage (HostWorker) {
  if (!isInterposed(HostWorker)) state.leave = interpose(HostWorker, intercept(currentEntries))
  return state.leave && (() => {
    if (currentEntries() === undefined) state.leave()
  })
}

function warn (why) {
  const remedy = '. Give Workers execArgv: [\'-r\', \'atomics-waitasync/force\']'
  startingWorkers.warn('An install does not reach Workers: ' + why + remedy)
}
