'use strict'

/**
 * What the four entry points export, and what each does when it is loaded.
 *
 * An entry's own `wait`, `notify` and `waitAsync` are chosen at load, once: on a Node that has a `waitAsync`, neither the
 * plain entry nor `/keep-alive` loads the native library before something needs it. Nor does the plain entry load
 * `worker_threads` there, which takes longer than all the rest: what only some calls need is required where they need it.
 */

const describe = require('./describe')
const globalObject = require('./global')
const { markOf } = require('./host')
const { install, uninstall, hostTrio, keepAliveTrio, ownTrio } = require('./install')
const { own } = require('./realm')
const sync = require('./sync')

/** What each entry does to this thread's Atomics, and the functions that it exports itself. */
const ENTRIES = {
  index: { load: () => install('index'), trio: () => standing() || hostTrio(own) || ownTrio(own) },
  force: { load: () => install('force', { force: true }), trio: () => ownTrio(own) },
  'keep-alive': { load: () => install('keep-alive'), trio: () => standing() || keepAliveTrio(own) || ownTrio(own) },
  pure: { load () {}, trio: () => ownTrio(own) }
}

/** What an install, of whatever entry or copy, has put into the global Atomics: whoever imports and whoever uses the global shall meet. */
function standing () {
  const { wait, notify, waitAsync } = globalObject.Atomics
  return markOf(waitAsync) === undefined ? undefined : { wait, notify, waitAsync }
}

function createEntry (name) {
  ENTRIES[name].load()
  const { wait, notify, waitAsync } = ENTRIES[name].trio()
  let count
  const entry = {
    wait,
    notify,
    waitAsync,

    install: (options) => install(name, options),
    uninstall: (target) => uninstall(target),

    get engine () {
      if (name === 'pure') return 'addon'
      const current = globalObject.Atomics.waitAsync
      return engineOf(typeof current === 'function' ? current : waitAsync)
    },

    ref (promise) {
      requirePromise(promise, 'ref')
      return require('./settle').ref(promise) || require('./keep-alive').ref(promise)
    },

    unref (promise) {
      requirePromise(promise, 'unref')
      return require('./settle').unref(promise) || require('./keep-alive').unref(promise)
    },

    waiterCount (typedArray, index) {
      if (count === undefined) count = require('./atomics').createWaiterCount(own)
      return count(typedArray, index)
    }
  }
  for (const name of Object.keys(sync)) Object.defineProperty(entry, name, Object.getOwnPropertyDescriptor(sync, name))
  return entry
}

function engineOf (waitAsync) {
  const known = markOf(waitAsync)
  return known === undefined ? 'host' : known.engine
}

function requirePromise (promise, caller) {
  const util = require('util')
  // Also one of another realm.
  if (!util.types.isPromise(promise)) {
    throw new TypeError(caller + ': promise must be a Promise, not ' + describe(promise))
  }
}

module.exports = createEntry
