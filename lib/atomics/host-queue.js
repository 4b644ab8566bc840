'use strict'

/**
 * Functions that wait in the host's queue. Those of the entry `/keep-alive` keep the event loop alive meanwhile; by
 * itself the host does not do so.
 *
 * The package cannot know which threads may notify the host's queue (WebAssembly does so without any
 * JavaScript). So a pending wait holds the loop until it is settled, or released by `unref`. Result and promise
 * are the host's own, unchanged.
 *
 * A wait on a WebAssembly memory holds the loop only if it was made by the function that an entry exports, or after
 * `ref`: each thread of a program that Emscripten compiled, or one for WASI threads, always has a wait of the global
 * function pending there, and has to end nevertheless. So the function that is installed has a twin that is exported.
 *
 * Each wait that holds the loop has a timer of its own, from the call to the end of the hold. A timer keeps the
 * asynchronous context and the realm in which it is made; those of a pending wait are kept by its promise anyway, and
 * nothing stays of a wait that is over.
 *
 * Invariant, per thread: a promise is in `pending` exactly from the host's `waitAsync` that made it to its settlement,
 * with a timer exactly while it holds the loop.
 */

const { bufferOf, isWebAssemblyMemory } = require('../util/intrinsics')
const { MAPS_MEMORY } = require('../util/quirks')
const { mark, markOf } = require('../util/realm')
const { LONGEST_TIMER, clearInterval, setInterval } = require('../util/timers')

/** The entries whose `waitAsync` takes a signal. */
const OWN_QUEUE = 'atomics-waitasync/force and atomics-waitasync/pure'

const { apply, getPrototypeOf } = Reflect

/** The `then` of the host's promises. The global Promise may be a library's. */
let then

/** Makes a timer, whose only use is to hold the event loop. */
const hold = () => setInterval(() => {}, LONGEST_TIMER)

/**
 * The timer by which each promise holds the loop; otherwise null. Weak: a wait that is unref'd and never
 * notified may be forgotten.
 */
const pending = new WeakMap()

/** Notes the promise of a pending wait until it is settled. `result` is the host's, and is returned. */
function track (result, refed) {
  const promise = result.value
  const release = () => {
    clearInterval(pending.get(promise))
    pending.delete(promise)
  }
  if (then === undefined) takeThen()
  apply(then, promise, [release, release])
  // Afterwards: near the end of the stack each of these may throw, and a timer that nothing ends
  // would hold the loop for ever.
  pending.set(promise, refed ? hold() : null)
  return result
}

/** Sets whether a wait holds the event loop. False if the promise is not in `pending`. */
function setRefed (promise, refed) {
  const timer = pending.get(promise)
  if (timer === undefined) return false
  if (refed && timer === null) pending.set(promise, hold())
  if (!refed && timer !== null) {
    clearInterval(timer)
    pending.set(promise, null)
  }
  return true
}

/**
 * Makes the three functions for a realm whose host has a `waitAsync`.
 * @returns {{ wait: Function, notify: Function, waitAsync: Function }} as they are installed; the mark of
 *   `waitAsync` has its twin
 */
function createKeepAlive (realm) {
  const { host } = realm
  const holding = (isExported) => wrap(host, isExported, (result, typedArray) => (
    result.async ? track(result, isExported || !isWebAssemblyMemory(bufferOf(typedArray))) : result))
  const exported = mark(holding(true), 'host', host, { setRefed })
  return { wait: host.wait, notify: host.notify, waitAsync: mark(holding(false), 'host', host, { exported, setRefed }) }
}

/** Wraps the host's `waitAsync` for export. */
const exportHost = (host) => mark(wrap(host, true, (result) => result), 'host', host)

/** Makes a `waitAsync` that passes the host's result through `finish`. */
function wrap (host, isExported, finish) {
  const hostWaitAsync = host.waitAsync
  return {
    // The parameters without a default value are its `length`.
    waitAsync (typedArray, index, value, timeout, options = undefined) {
      if (isExported && options !== undefined) refuseSignal(options)
      return finish(apply(hostWaitAsync, this, arguments), typedArray)
    }
  }.waitAsync
}

/** Throws for a signal: the host could not cancel the wait. */
function refuseSignal (options) {
  require('./signals').refuseSignal(options, 'this function waits: those of ' + OWN_QUEUE + ' take one')
}

/** The library; null if there is none. */
let binding

/** Whether an argument is on memory of several processes. It may be anything. */
function crosses (typedArray, ours) {
  try {
    if (binding === undefined) {
      binding = null
      binding = require('../agent/load-binding').load()
    }
    return binding !== null && binding.mapsMemory() && ours().crosses(typedArray)
  } catch (_) {
    // There is no library; or the host throws its own error.
    return false
  }
}

/**
 * Makes `wait` and `waitAsync` for both kinds of memory. Where several processes share it, they wait in the package's
 * own queue, which alone reaches the other processes.
 *
 * Whether there is such memory is asked of the native library, so the first call loads it, where a Node can have some.
 * @param {{ wait: Function, waitAsync: Function }} others for all other memory
 * @param {() => object} ours makes those on the package's own queue; `crosses` says whether it has an argument's memory
 */
function createCrossing ({ wait, waitAsync }, realm, ours) {
  if (!MAPS_MEMORY) return { wait, waitAsync }
  const both = {
    wait (typedArray, index, value, timeout) {
      return apply(crosses(typedArray, ours) ? ours().wait : wait, this, arguments)
    },
    // The parameters without a default value are its `length`.
    waitAsync (typedArray, index, value, timeout, options = undefined) {
      return apply(crosses(typedArray, ours) ? ours().waitAsync : waitAsync, this, arguments)
    }
  }
  return {
    wait: mark(both.wait, 'host', realm.host),
    waitAsync: mark(both.waitAsync, 'host', realm.host, markOf(waitAsync))
  }
}

function takeThen () {
  then = getPrototypeOf((async () => {})()).then
}

module.exports = { OWN_QUEUE, createCrossing, createKeepAlive, exportHost, setRefed, track }

// Last: that makes a promise, so a hook of async_hooks may use this file.
takeThen()
