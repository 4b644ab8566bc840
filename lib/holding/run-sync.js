'use strict'

/** Runs a callback with a hold for which this thread blocks. The hold is released, however the callback ends. */

const { types: { isPromise } } = require('util')
const { assertStack } = require('../agent/find-agent')
const { assertNoPromise, assertSynchronous, assertWorker, waitOptions } = require('../waiting/wait-options')
const { blockOrThrow, take } = require('./acquire')
const { SERIAL } = require('./entry')
const { Repairing, optionsOf } = require('./repair')
const { EXCLUSIVE, SHARED } = require('./request')
const theList = require('./the-list')
const { newHold } = require('./token')
const { wordOf } = require('./view-word')

/**
 * Runs a callback as `runHolding` of run.js, but blocks.
 * @param {string} twin the asynchronous form, for messages
 * @throws {TypeError} on the main thread; the callback or the repair is an async function; or the callback returned a
 *   promise, and the hold has been given back
 */
function runHoldingSync (instance, request, callback, options, caller, twin) {
  assertWorker(caller, twin)
  const word = wordOf(instance)
  const wanted = typeof request === 'number' ? request : request(word)
  assertSynchronous(callback, caller, twin)
  // It must be possible to release the hold.
  assertStack()
  const wait = wanted <= EXCLUSIVE ? optionsOf(instance, options, caller, false) : waitOptions(options, caller, false)
  const { repair } = wait
  if (repair !== undefined) assertSynchronous(repair, caller, twin, 'repair')
  const repairing = repair === undefined ? undefined : repairingOf(word, wait, caller)
  const hold = newHold(word, wanted)
  if (!take(hold)) blockOrThrow(hold, wait.timeout, caller)
  return runWith(hold, callback, repairing, caller, twin)
}

/** Runs a callback with an acquired Hold or Grant, or null. Null: a name was not available. */
function runWith (hold, callback, repairing, caller, twin) {
  let result
  let held = hold
  let failed = true
  try {
    if (repairing !== undefined && hold !== null && hold.token.ownerDied) held = repairing.soundSync(hold, twin)
    result = held === null ? callback(null) : callNow(held.token, callback, held.given)
    // Another thenable is refused once nothing is held: reading its `then` may run code.
    failed = isPromise(result)
  } finally {
    if (held !== null) held.end(failed, false, repairing !== undefined)
  }
  assertNoPromise(result, caller + ': callback', twin)
  return result
}

/**
 * Calls a synchronous callback of the user's that has a hold. If stalls are reported, native code knows that the hold
 * waits for no promise: none is awaited within it.
 */
function callNow (token, callback, given) {
  const { binding, stallAfter } = theList().native
  if (stallAfter === 0) return callback(given)
  const serial = token[SERIAL]
  binding.taskBegins(serial)
  try {
    return callback(given)
  } finally {
    binding.taskEnds(serial)
  }
}

function repairingOf (word, wait, caller) {
  return new Repairing(wait, caller, (isShared, timeout) => {
    const hold = newHold(word, isShared ? SHARED : EXCLUSIVE)
    if (!take(hold)) blockOrThrow(hold, timeout, caller, wait.timeout)
    return hold
  })
}

module.exports = { callNow, runHoldingSync, runWith }
