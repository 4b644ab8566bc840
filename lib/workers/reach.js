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
const { hostWorker, interpose } = require('./host-worker')
const { threads } = require('../util/worker-threads')

/** By what was installed, the engine of Atomics or the locks of navigator: the entry that workers load before anything else. */
const ENTRY_OF = {
  addon: path.join(__dirname, '..', '..', 'force.js'),
  host: path.join(__dirname, '..', '..', 'keep-alive.js'),
  locks: path.join(__dirname, '..', '..', 'web-locks.js')
}

/** Where this thread has its list of entries, which all copies of the package share: only the copy that installed last is asked. */
const ENTRIES = Symbol.for('atomics-waitasync.entries')

/**
 * The entries of all installs that have not been undone.
 * @type {{ entry: string, concerns: 'Atomics' | 'navigator' }[]}
 */
function sharedEntries () {
  if (process[ENTRIES] === undefined) Object.defineProperty(process, ENTRIES, { value: [] })
  return process[ENTRIES]
}

/** What a worker that is being started loads: the last entry that concerns Atomics, and that of navigator. Undefined if there is none. */
function currentEntries () {
  const last = (what) => sharedEntries().filter(({ concerns }) => concerns === what).slice(-1)
  const entries = last('Atomics').concat(last('navigator'))
  return entries.length === 0 ? undefined : entries.map(({ entry }) => entry)
}

/**
 * @param {'addon' | 'host' | 'locks'} engine the queue that workers will use; 'locks': they get `navigator.locks`
 * @param {boolean} isAtLoad whether an entry asks, which is being loaded: then there is a warning instead of an error
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine, isAtLoad) {
  const added = { entry: ENTRY_OF[engine], concerns: engine === 'locks' ? 'navigator' : 'Atomics' }
  const HostWorker = hostWorker()
  const isOther = process.versions.bun || process.versions.deno
  if (HostWorker === undefined && !isOther) {
    if (threads !== undefined) warn('other code has replaced worker_threads.Worker, and Node\'s class is not found behind it')
    return () => {}
  }
  const leave = isOther ? require('./by-wrapping')(currentEntries) : interpose(HostWorker, intercept(currentEntries))
  if (leave === undefined) {
    const problem = 'worker_threads.Worker is not extensible'
    if (!isAtLoad) throw new TypeError('install: workers must be false, because ' + problem)
    warn(problem)
    return () => {}
  }
  const entries = sharedEntries()
  entries.push(added)
  return () => {
    entries.splice(entries.indexOf(added), 1)
    leave()
  }
}

function warn (why) {
  process.emitWarning('An install does not reach Workers: ' + why + '. Give Workers execArgv: [\'-r\', \'atomics-waitasync/force\']', { code: 'ATOMICS_WAITASYNC_WORKER' })
}
