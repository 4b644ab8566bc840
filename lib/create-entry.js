'use strict'

/**
 * The exports of the entry points, and each entry's effect at load.
 *
 * An entry's own `wait`, `notify` and `waitAsync` are chosen once, at load. The plain entry, where it changes nothing,
 * chooses them at its first use (index.js). On a Node that has a `waitAsync`, neither that entry nor `/keep-alive`
 * loads the native library on the main thread before it is needed; in a Worker it is loaded, so that the thread counts.
 * Modules that only some calls need are required in those calls.
 */

const beforeUse = require('./agent/before-use')
const { exportedTrio, install, uninstall, hostTrio, keepAliveTrio, ownTrio } = require('./install')
const { lazy, load } = require('./lazy')
const { exportedOf, markOf, own } = require('./util/realm')
const { asAtLoad, define, defineProperty } = require('./util/intrinsics')
const { assertStackToLoad } = require('./util/stack')
const { describe } = require('./util/values')
const { REQUIRE_MAKES_PROMISES, globalObject } = require('./util/quirks')
const { isEnabled } = require('./util/variables')
const { isMainThread } = require('./util/worker-threads')

// Not while a lock's code is being loaded, of which a hook could use only half.
if (REQUIRE_MAKES_PROMISES) require('./util/require-builtins')()
beforeUse.call = (agent) => require('./observe/attach')(agent)

/**
 * The entries: how each changes this thread's Atomics, and its three functions, if there are others than the package's
 * own.
 */
const ENTRIES = {
  index: { load: () => install('index', undefined, true), trio: () => standing() || hostTrio(own) },
  force: { load: () => install('force', { force: true }, true), trio () {} },
  'keep-alive': { load: () => install('keep-alive', undefined, true), trio: () => standing() || keepAliveTrio(own) },
  pure: { load () {}, trio () {} },
  'web-locks': { load: () => require('./install/navigator')(), trio: () => standing() || hostTrio(own) }
}

/**
 * Returns the global functions, if any copy has installed them. Code that imports and code that uses the
 * global must share a queue.
 */
function standing () {
  const { wait, notify, waitAsync } = globalObject.Atomics
  return markOf(waitAsync) === undefined ? undefined : { wait, notify, waitAsync }
}

/** Returns the functions for memory that several processes share. */
function crossingTrio () {
  const { wait, waitAsync } = ownTrio(own)
  const crosses = (typedArray) => require('./atomics/functions').viewOf(typedArray, own).crosses
  return { wait, waitAsync: exportedOf(waitAsync), crosses }
}

let isCreated = false

/** @param {object} [ofProcess] functions of `process`, from an entry that was loaded before this file */
function createEntry (name, ofProcess) {
  if (!isCreated && ofProcess !== undefined) asAtLoad(ofProcess)
  isCreated = true
  ENTRIES[name].load()
  const trio = exportedTrio(ENTRIES[name].trio() || ownTrio(own), own)
  const exported = exportedOf(trio.waitAsync) || require('./atomics/host-queue').exportHost(own.host)
  const { notify } = trio
  const { wait, waitAsync } = markOf(exported).engine === 'addon' ? { wait: trio.wait, waitAsync: exported }
    : require('./atomics/host-queue').createCrossing({ wait: trio.wait, waitAsync: exported }, own, crossingTrio)
  let functions
  const entry = {
    wait, notify, waitAsync,

    install: (options) => install(name, options),
    uninstall: (target) => uninstall(target),

    get engine () {
      if (name === 'pure') return 'addon'
      const current = globalObject.Atomics.waitAsync
      const known = markOf(typeof current === 'function' ? current : waitAsync)
      return known === undefined ? 'host' : known.engine
    },

    ref: (promise) => setRefed(promise, true, 'ref'),
    unref: (promise) => setRefed(promise, false, 'unref'),

    waiterCount (typedArray, index) {
      if (functions === undefined) {
        assertStackToLoad()
        functions = require('./atomics/functions')
      }
      return functions.waiterCount(typedArray, index, own)
    }
  }
  for (const name of Object.keys(lazy)) defineProperty(entry, name, loadedWhenRead(name))
  if (isEnabled()) start()
  else if (!isMainThread) noteThread()
  return entry
}

/** Counts this thread among those that may settle the waits of others: its first use may be to notify. */
function noteThread () {
  try {
    require('./agent/load-binding').load().threadLoads()
  } catch (_) {
    // There is no library, so it cannot.
  }
}

/** Starts this thread's agent now: a program that hangs may not have used it. */
function start () {
  try {
    require('./agent/find-agent').agent()
  } catch (error) {
    process.emitWarning(error.message)
  }
}

/** Makes a property that loads its export when it is read. Then it becomes a plain one, unless its object is frozen. */
function loadedWhenRead (name) {
  const become = (object, value) => define(object, name, value, true, true)
  return {
    get () {
      const value = load(name)
      become(this, value)
      return value
    },
    set (value) {
      if (!become(this, value)) throw new TypeError(name + ' cannot be replaced: the exports are frozen')
    },
    enumerable: true,
    configurable: true
  }
}

function setRefed (promise, refed, caller) {
  // The promise may be of another realm, or of a library that had replaced the global Promise.
  if (!require('util').types.isPromise(promise) && !(promise instanceof own.Promise)) {
    throw new TypeError(caller + ': promise must be a Promise, not ' + describe(promise))
  }
  const ours = require('./agent/find-agent')
  if (ours.setRefed(promise, refed) || require('./atomics/host-queue').setRefed(promise, refed)) return true
  // Functions of another copy may have made the promise, and this copy may not have used the thread's agent yet.
  const known = markOf(globalObject.Atomics.waitAsync)
  if (known === undefined) return false
  if (known.engine === 'addon') return ours.agent().setRefed(promise, refed)
  return Boolean(known.setRefed) && known.setRefed(promise, refed)
}

// For ES modules (lazy-exports.mjs): these load their code at the first use, not when they are read.
createEntry.lazy = lazy
// For the entry /processes, which has other exports.
createEntry.processes = () => {
  if (isEnabled()) start()
  return require('./processes')
}

module.exports = createEntry
