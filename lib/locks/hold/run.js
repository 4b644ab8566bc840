'use strict'

/** Runs a callback with a hold, which is released however it ends. */

const { agent, assertStack } = require('../../agent/agent')
const { Promise } = require('../../util/intrinsics')
const { LATE, hideFrames, throwIfAborted } = require('../../waiting/errors')
const { assertFunction, waitOptions } = require('../../waiting/options')
const { wordOf } = require('../view')
const { lateError, takeForPromise, takeOrThrow } = require('./acquire')
const { Claim } = require('./claim')
const { callWithin, giveBackAfter } = require('./hold')
const { Repairing, optionsOf } = require('./repair')
const { assertNoReentry } = require('./reentry')
const { EXCLUSIVE, SHARED } = require('./request')
const { newHold, newToken } = require('./token')

/** The claim of an async callback form. Its promise never rejects: that would take a second function. */
class Task extends Claim {
  constructor (hold, wait) {
    super(hold, wait)
    this.resolve = undefined
  }

  reject (reason) {
    this.resolve({ __proto__: null, reason })
  }
}

/** The claim that `run` began before it returned its promise. A property for the reason given in view.js. */
const begun = { claim: undefined }
/**
 * The Repairing of the latest `run` that has one. Apart, and only read where there is none: writing it
 * would cost a lock a tenth.
 */
const latest = { repairing: undefined }

/**
 * Runs `callback(token)` with a hold, and releases it. The callback is called before this returns if that needs no
 * waiting; the hold is released even if it throws. `request` is as for `acquireAsync`.
 */
function runHolding (instance, request, callback, options, caller) {
  // Of a call within which a program's code calls this; or left by one that a time limit of `vm` interrupted.
  const outerClaim = begun.claim
  begun.claim = undefined
  // The Repairing of a call whose repair calls this.
  const outer = latest.repairing
  const promise = run(instance, request, callback, options, caller)
  const { claim } = begun
  begun.claim = outerClaim
  if (latest.repairing !== outer) {
    latest.repairing.promise = promise
    latest.repairing = outer
  }
  if (claim !== undefined && claim.slot >= 0) agent().remember(promise, claim)
  return promise
}

async function run (instance, request, callback, options, caller) {
  const word = wordOf(instance)
  const wanted = typeof request === 'number' ? request : request(word)
  assertFunction(callback, caller)
  // Permits protect nothing that could be repaired.
  const wait = wanted <= EXCLUSIVE ? optionsOf(instance, options, caller, true) : waitOptions(options, caller)
  const repairing = wait.repair === undefined ? undefined : repairingOf(word, wait, caller)
  let token = newToken(wanted)
  // Whether this runs in a job of its own, and not in its caller's.
  let inJob = false
  if (!takeOrThrow(word, wanted, token, wait)) {
    assertNoReentry(word, wanted, wait, caller)
    const hold = newHold(word, wanted, token)
    const outcome = await granted(hold, wait, repairing)
    if (outcome !== undefined) throw failure(outcome, hold, wait.timeout, run)
    inJob = true
  }
  let failed = true
  try {
    if (repairing !== undefined && token.ownerDied) {
      inJob = true
      token = (await repairing.sound(newHold(word, wanted, token))).token
    }
    let result = callWithin(token, callback, token, word)
    // A primitive cannot be a promise, and needs no further turn.
    if (typeof result === 'object' || typeof result === 'function') {
      inJob = true
      result = await result
    }
    failed = false
    return result
  } finally {
    try {
      giveBackAfter(token, failed, inJob, repairing !== undefined)
    } catch (_) {
      // No stack is left for it. In a turn of its own there is.
      await undefined
      giveBackAfter(token, failed, false, repairing !== undefined)
    }
  }
}

/**
 * Claims a hold for a promise. Resolves with undefined, LATE or, if it is refused, an object with the reason. Returns
 * LATE at once if there is no time to wait.
 * @param {{ promise?: Promise, claim?: Claim }} [call] notes the claim: `ref` and `unref` of the promise apply to each
 */
function granted (hold, wait, call) {
  if (wait.timeout === 0) return LATE
  assertStack()
  const task = new Task(hold, wait)
  if (call !== undefined) {
    if (call.claim !== undefined) task.refed = call.claim.refed
    call.claim = task
  }
  const outcome = new Promise((resolve) => { task.resolve = resolve })
  task.begin()
  // Not before: a signal may have run code that begins another.
  if (call === undefined || call.promise === undefined) begun.claim = task
  else if (task.slot >= 0) agent().remember(call.promise, task)
  return outcome
}

/** Makes the error of a claim that was not granted. */
const failure = (outcome, hold, timeout, caller) => (
  outcome === LATE ? hideFrames(lateError(hold, timeout), caller) : outcome.reason)

function repairingOf (word, wait, caller) {
  const repairing = new Repairing(wait, caller, (isShared, timeout) => {
    return acquireAgain(newHold(word, isShared ? SHARED : EXCLUSIVE), timeout, wait, repairing)
  })
  latest.repairing = repairing
  return repairing
}

/** Acquires a hold for a promise that has had another. `timeout` is the rest of its time. */
async function acquireAgain (hold, timeout, wait, repairing) {
  const { signal } = wait
  throwIfAborted(signal)
  if (takeForPromise(hold)) return hold
  assertNoReentry(hold.word, hold.request, wait, repairing.caller)
  const outcome = await granted(hold, { timeout, signal }, repairing)
  if (outcome !== undefined) throw failure(outcome, hold, wait.timeout, acquireAgain)
  return hold
}

module.exports = { granted, runHolding }
