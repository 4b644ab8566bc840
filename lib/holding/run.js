'use strict'

/**
 * Runs a callback with a hold, which is released however it ends: awaiting, or blocking.
 *
 * After a death, forms that have a `repair` run that first: the dead holder may have left the state half changed.
 *
 * - A repair has an exclusive hold. While it runs, the word has the note of the death, as if nobody had
 *   seen it. So however the repair or its thread ends, and in spite of anything that it does with its token,
 *   the next holder sees the death.
 * - Once it has ended without an error, and still has the hold, the note is removed: nobody else sees it.
 * - A reader that sees it releases its share, acquires an exclusive hold, repairs if that saw it as well, releases it,
 *   and acquires a share again. So readers that saw it together pass through the line one after the other, the first
 *   of them repairs, and then they read together.
 */

const { types: { isPromise } } = require('util')
const { agent, assertStack } = require('../agent/find-agent')
const { Promise, bare, max, now } = require('../util/intrinsics')
const { LATE, hideFrames, throwIfAborted } = require('../waiting/errors')
const {
  UNLIMITED, assertFunction, assertNoPromise, assertSynchronous, assertWorker, callbackOptions, waitOptions
} = require('../waiting/wait-options')
const { Claim, blockOrThrow, lateError, take, takeOrThrow } = require('./acquire')
const { UnlockToken, newHold, newToken, releaseAfter } = require('./hold')
const { EXCLUSIVE, INDEX, NOT_HELD, SERIAL, SHARED } = require('./request')
const { assertNoReentry } = require('./reentry')
const { serialsOf } = require('./tasks')
const theList = require('./the-list')
const { fieldOf, wordOf } = require('./view-word')

/** The key of an instance's own repair, if it has one. */
const REPAIR = Symbol('atomics-waitasync.repair')

/**
 * A call: its promise, and the last claim of it. `ref` and `unref` of the promise apply to each claim. No literal
 * without a prototype: to make one takes 100 ns.
 */
class Call {
  constructor () {
    this.promise = undefined
    this.claim = undefined
  }
}
bare(Call)

/**
 * Runs `callback(token)` with a hold, and releases it. The callback is called before this returns if that needs no
 * waiting; the hold is released even if it throws. `request` is as for `acquireAsync`.
 */
function runHolding (instance, request, callback, options, caller) {
  const call = new Call()
  const promise = call.promise = run(call, instance, request, callback, options, caller)
  const { claim } = call
  if (claim !== undefined && claim.slot >= 0) agent().remember(promise, claim)
  return promise
}

/** The index of a token for which the short way was closed. Not a mark elsewhere: a hook may run before it is read. */
const MISSED = -1

/** Runs a callback under a lock that is free. Undefined: it is not, and nothing was done. */
function runShortly (instance, callback) {
  const word = fieldOf(instance)
  if (word === undefined || !word.isFree || typeof callback !== 'function') return undefined
  const token = new UnlockToken()
  const promise = runFree(instance, word, callback, token)
  return token[INDEX] === MISSED ? undefined : promise
}

/**
 * Runs a callback as `run` does, by the short way. What it seldom calls is a function of this file: as a constant it
 * might throw because it is not defined yet, and V8 would keep the state of `await` for that.
 */
async function runFree (instance, word, callback, token) {
  const { list } = word
  if (instance[REPAIR] !== undefined || list.tasks !== undefined || !list.takeFree(word, token)) {
    token[INDEX] = MISSED
    return undefined
  }
  let result
  let failed = true
  let inJob = false
  try {
    result = callback(token)
    if (typeof result === 'object' || typeof result === 'function') {
      inJob = true
      result = await result
    }
    failed = false
    if (list.releaseToken(token)) token[SERIAL] = NOT_HELD
    else end(token, false, inJob)
  } catch (error) {
    try {
      end(token, failed, inJob)
    } catch (_) {
      // As in `run`.
      await undefined
      end(token, failed, false)
    }
    if (failed) throw error
  }
  return result
}

function end (token, failed, inJob) {
  releaseAfter(token, failed, inJob)
}

async function run (call, instance, request, callback, options, caller) {
  const word = wordOf(instance)
  const wanted = typeof request === 'number' ? request : request(word)
  assertFunction(callback, caller)
  // Permits protect nothing that could be repaired.
  const wait = wanted <= EXCLUSIVE ? optionsOf(instance, options, caller, true) : waitOptions(options, caller)
  const repairing = wait.repair === undefined ? undefined : repairingOf(call, word, wait, caller)
  let token = newToken(wanted)
  // Whether this runs in a job of its own, and not in its caller's.
  let inJob = false
  if (!takeOrThrow(word, wanted, token, wait)) {
    if (word.detectsReentry) assertNoReentry(word, wanted, wait, caller)
    const hold = newHold(word, wanted, token)
    const outcome = await granted(hold, wait, call)
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
      releaseAfter(token, failed, inJob, repairing !== undefined)
    } catch (_) {
      // No stack is left for it. In a turn of its own there is.
      await undefined
      releaseAfter(token, failed, false, repairing !== undefined)
    }
  }
}

/**
 * Claims a hold for a promise. Resolves with undefined, LATE or, if it is refused, an object with the reason. Returns
 * LATE at once if there is no time to wait.
 * @param {{ promise?: Promise, claim?: Claim }} call notes the claim
 */
function granted (hold, wait, call) {
  if (wait.timeout === 0) return LATE
  assertStack()
  let claim
  const outcome = new Promise((resolve) => { claim = new Claim(hold, wait, resolve) })
  if (call.claim !== undefined) claim.refed = call.claim.refed
  call.claim = claim
  claim.begin()
  if (call.promise !== undefined && claim.slot >= 0) agent().remember(call.promise, claim)
  return outcome
}

const failure = (outcome, hold, timeout, caller) => (
  outcome === LATE ? hideFrames(lateError(hold, timeout), caller) : outcome.reason)

function repairingOf (call, word, wait, caller) {
  return new Repairing(wait, caller, async function acquireAgain (isShared, timeout) {
    const hold = newHold(word, isShared ? SHARED : EXCLUSIVE)
    const { signal } = wait
    throwIfAborted(signal)
    if (take(hold, true)) return hold
    if (word.detectsReentry) assertNoReentry(word, hold.request, wait, caller)
    const outcome = await granted(hold, { timeout, signal }, call)
    if (outcome !== undefined) throw failure(outcome, hold, wait.timeout, acquireAgain)
    return hold
  })
}

// ——— Blocking forms ———

/**
 * Runs a callback as `runHolding`, but blocks.
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
  const repairing = repair === undefined ? undefined : new Repairing(wait, caller, (isShared, timeout) => {
    const hold = newHold(word, isShared ? SHARED : EXCLUSIVE)
    if (!take(hold)) blockOrThrow(hold, timeout, caller, wait.timeout)
    return hold
  })
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
  const serials = serialsOf(token[SERIAL])
  for (let n = 0; n < serials.length; n++) binding.noteTask(serials[n], true)
  try {
    return callback(given)
  } finally {
    for (let n = 0; n < serials.length; n++) binding.noteTask(serials[n], false)
  }
}

function optionsOf (instance, options, caller, signals) {
  const repair = instance[REPAIR]
  return options === undefined && repair === undefined ? UNLIMITED : callbackOptions(options, caller, signals, repair)
}

/** A call of a callback form that has a repair. */
class Repairing {
  /**
   * @param {{ timeout: number, repair: Function }} wait
   * @param {(isShared: boolean, timeout: number) => Hold | null | Promise<Hold | null>} acquire acquires again;
   *   null if it must not wait
   */
  constructor ({ timeout, repair }, caller, acquire) {
    this.repair = repair
    this.caller = caller
    this.acquire = acquire
    // When the time of its waits is over. Repairing is not waiting.
    this.end = now() + timeout
  }

  get left () {
    return max(0, this.end - now())
  }

  /**
   * Repairs, and returns the hold with which the callback runs. It replaces the hold that saw the death;
   * null if it must not wait.
   */
  async sound (hold) {
    assertStack()
    if (!hold.isShared) {
      await this.restore(hold)
      return hold
    }
    let share = hold
    do {
      share.end(false)
      const writer = await this.acquire(false, this.left)
      if (writer === null) return null
      let failed = true
      try {
        if (writer.token.ownerDied) await this.restore(writer)
        failed = false
      } finally {
        writer.end(failed)
      }
      share = await this.acquire(true, this.left)
    } while (share !== null && share.token.ownerDied)
    return share
  }

  async restore (hold) {
    const { caller, repair } = this
    const since = now()
    hold.noteDeath()
    await callWithin(hold.token, repair, hold.given, hold.word)
    hold.repaired(caller)
    this.end += now() - since
  }

  soundSync (hold, twin) {
    if (!hold.isShared) {
      this.restoreSync(hold, twin)
      return hold
    }
    let share = hold
    do {
      share.end(false)
      const writer = this.acquire(false, this.left)
      if (writer === null) return null
      let failed = true
      try {
        if (writer.token.ownerDied) this.restoreSync(writer, twin)
        failed = false
      } finally {
        writer.end(failed)
      }
      share = this.acquire(true, this.left)
    } while (share !== null && share.token.ownerDied)
    return share
  }

  restoreSync (hold, twin) {
    const { caller, repair } = this
    const since = now()
    hold.noteDeath()
    assertNoPromise(repair(hold.given), caller + ': repair', twin)
    hold.repaired(caller)
    this.end += now() - since
  }
}
bare(Repairing)

/**
 * Calls a callback of the user's that has a hold: in a task of its own, if stalls are reported or re-entry is detected.
 * @param {Word} [word] of the hold; a name has none
 */
function callWithin (token, callback, given, word) {
  const { tasks } = theList()
  return tasks === undefined ? callback(given) : tasks.call(token[SERIAL], callback, given, word)
}

module.exports = { REPAIR, Repairing, callWithin, granted, runHolding, runHoldingSync, runShortly, runWith }
