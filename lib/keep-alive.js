'use strict'

/**
 * The host's own `waitAsync`, but a pending wait keeps its thread's event loop alive, which the host forgets to do.
 *
 * Nobody but the host knows who may notify its queue (WebAssembly does so without any JavaScript), so that a pending wait
 * holds the loop until it is settled or let go by `unref`. Result and promise are the host's own, untouched.
 *
 * Invariants, per thread:
 * - A promise is in `pending` exactly from the host's `waitAsync` that made it to its settlement.
 * - `holds` is the number of pending promises that are ref'd; the one handle is ref'd exactly as long as that is not 0.
 */

const { setInterval } = require('timers')
const { mark } = require('./host')

/** The longest interval that Node has: 24 days. Its only use is that a ref'd one holds the event loop. */
const LONGEST = 2 ** 31 - 1

const { apply } = Reflect
const { then } = Promise.prototype

/** From promise to whether it is ref'd. Weak: a wait that is let go, and that nobody notifies, may be forgotten. */
const pending = new WeakMap()
let holds = 0
let handle

function hold () {
  if (holds++ !== 0) return
  if (handle === undefined) handle = setInterval(() => {}, LONGEST)
  else handle.ref()
}

function letGo () {
  if (--holds === 0) handle.unref()
}

function holdUntilSettled (promise) {
  const release = () => {
    if (pending.get(promise)) letGo()
    pending.delete(promise)
  }
  pending.set(promise, true)
  hold()
  apply(then, promise, [release, release])
}

/** Lets a pending wait hold the event loop, or not. False if the promise is no pending wait of a keep-alive `waitAsync`. */
function setRefed (promise, refed) {
  const before = pending.get(promise)
  if (before === undefined) return false
  if (before !== refed) {
    pending.set(promise, refed)
    if (refed) hold()
    else letGo()
  }
  return true
}

/** The three functions for a realm whose host has a `waitAsync`. */
function createKeepAlive (realm) {
  const { host } = realm
  const hostWaitAsync = host.waitAsync
  const { waitAsync } = {
    // The parameters give it the right `length`.
    waitAsync (typedArray, index, value, timeout) {
      const result = apply(hostWaitAsync, this, arguments)
      if (result.async) holdUntilSettled(result.value)
      return result
    }
  }
  return { wait: host.wait, notify: host.notify, waitAsync: mark(waitAsync, 'host', host) }
}

module.exports = {
  createKeepAlive,
  ref: (promise) => setRefed(promise, true),
  unref: (promise) => setRefed(promise, false)
}
