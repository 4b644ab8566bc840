'use strict'

/**
 * Makes an install reach every Worker that this thread starts from then on, before any code of the worker's own runs. Otherwise a
 * plain `Atomics.notify` in a worker would silently wake no waiter of ours.
 *
 * Workers are reached by the message that starts them (`by-message/`): the one way that reaches all of them, on every Node, and
 * leaves their flags, environment and options alone. docs/environments.md says what it does in which situation.
 */

const path = require('path')
const { intercept } = require('./by-message/intercept')
const { hostWorker, interpose, isInterposed } = require('./host-worker')
const shared = require('../../util/shared')
const { threads } = require('../../util/worker-threads')

const ROOT = path.join(__dirname, '..', '..', '..')

/** By what was installed, the engine of Atomics or the locks of navigator: the entry that workers load before anything else. */
const ENTRY_OF = {
  addon: path.join(ROOT, 'force', 'index.js'),
  host: path.join(ROOT, 'keep-alive', 'index.js'),
  locks: path.join(ROOT, 'web-locks', 'index.js')
}

/**
 * Of all copies of the package in this thread, so that they reach Workers by one replacement:
 * - `Atomics`, `navigator`: the installs that have not been undone, from the number of each to the entry that Workers load; the latest last
 * - `latest`: the number of the latest install
 * - `leave`: undoes the replacement
 */
const state = shared('reach', () => ({ Atomics: new Map(), navigator: new Map(), latest: 0, leave: undefined }))

/** What a worker that is being started loads: the last entry that concerns Atomics, and that of navigator. Undefined if there is none. */
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
    if (threads !== undefined) warn('other code has replaced worker_threads.Worker, and Node\'s class is not found behind it')
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

/** Replaces the parent of Node's class, unless an install has done so. What it returns undoes that once all installs have been undone. */
function reachByMessage (HostWorker) {
  if (!isInterposed(HostWorker)) state.leave = interpose(HostWorker, intercept(currentEntries))
  return state.leave && (() => {
    if (currentEntries() === undefined) state.leave()
  })
}

function warn (why) {
  process.emitWarning('An install does not reach Workers: ' + why + '. Give Workers execArgv: [\'-r\', \'atomics-waitasync/force\']', { code: 'ATOMICS_WAITASYNC_WORKER' })
}
