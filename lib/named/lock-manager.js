'use strict'

/**
 * `locks`: the Web Locks API, https://w3c.github.io/web-locks/, over lines that all threads of the process share.
 *
 * Invariants:
 * - Arguments are converted, and checked, in the order of the specification, before anything else happens; `request`
 *   and `query` reject instead of throwing.
 * - A grant is released exactly once: after the callback's promise has settled, or when the callback will not run. Only
 *   then is the promise of `request` settled. A grant that was stolen rejects it at once.
 */

const { agent, assertStack } = require('../agent/find-agent')
const { Promise, TypeError, append, bare, defineProperty } = require('../util/intrinsics')
const { REJECTS_OVERFLOWS } = require('../util/quirks')
const { LATE, parseList, throwIfAborted, unlessLate } = require('../waiting/errors')
const { assertSynchronous, assertWorker } = require('../waiting/wait-options')
const {
  FORMS, abortReason, assertNoTimeout, assertRequestable, checkAsync, read, reasonOf
} = require('./arguments')
const { lateError } = require('../holding/acquire')
const { Repairing, callWithin, runWith } = require('../holding/run')
const Grants = require('./grants')
const { asInterface, lockOf, newGrant, stolenError } = require('./names')
const locks = require('./manager')

const { pid } = process

class LockManager {
  constructor () {
    throw new TypeError('LockManager: illegal constructor; there is one for each thread, locks')
  }

  async query () {
    assertThis(this, 'query')
    // In the order in which they were made.
    const requests = parseList(agent().native.binding.nameRequests, 'query')
    const held = []
    const pending = []
    for (let n = 0; n < requests.length; n++) {
      const { name, shared, threadId, held: isHeld } = requests[n]
      append(isHeld ? held : pending, { clientId: pid + '-' + threadId, mode: shared ? 'shared' : 'exclusive', name })
    }
    return { held, pending }
  }
}

/** A call: its arguments, its promise if it has one, and its last grant and claim. */
class Call {
  constructor (caller) {
    this.caller = caller
    this.name = ''
    // Of a request for several names.
    this.names = undefined
    this.shared = false
    // Undefined if it gives a token.
    this.callback = undefined
    this.ifAvailable = false
    this.steal = false
    this.signal = undefined
    this.timeout = Infinity
    this.repair = undefined
    this.promise = this.resolve = this.reject = undefined
    this.grant = this.claim = undefined
    // Whether it has taken the name; or, if it has to await that, the answer of `granted`.
    this.taken = undefined
  }
}
bare(Call)

function assertThis (value, caller) {
  if (value === locks) return
  throw new TypeError(caller + ': illegal invocation; this must be the LockManager of the thread, locks')
}

// ——— Forms with a callback, and those that give a token ———

for (const form of FORMS) {
  const { caller, hasCallback, isAttempt, twin } = form
  const run = isAttempt || twin !== undefined ? requestSync : request
  const value = { [caller] () { return run(this, arguments, form) } }[caller]
  defineProperty(value, 'length', { value: hasCallback ? 2 : 1, configurable: true })
  defineProperty(LockManager.prototype, caller, { value, writable: true, enumerable: true, configurable: true })
}
asInterface(LockManager, ['query'])

function request (manager, given, form) {
  const { caller } = form
  const call = new Call(caller)
  const promise = new Promise((resolve, reject) => {
    call.resolve = resolve
    call.reject = reject
  })
  // The constructor turns a stack overflow in its executor into a rejection.
  if (call.reject === undefined) return promise
  call.promise = promise
  try {
    assertThis(manager, caller)
    read(call, given, form)
    checkAsync(call, caller)
    if (call.timeout !== Infinity) call.promise = unlessLate(promise, () => lateError(call.grant, call.timeout))
    if (REJECTS_OVERFLOWS) assertStack()
    const grant = nextGrant(call, call.shared)
    // Before the name is taken: afterwards there might be no stack for it.
    run(call)
    const { ifAvailable } = call
    const isTaken = call.steal ? grant.steal(grant.token) : grant.attempt()
    if (ifAvailable && !isTaken) grant.end(true)
    call.taken = isTaken || ifAvailable ? isTaken : grant.claim(call, call)
  } catch (error) {
    if (call.grant !== undefined) call.grant.end(true)
    call.reject(error)
  }
  return call.promise
}

function requestSync (manager, given, form) {
  const { caller, twin } = form
  assertThis(manager, caller)
  const call = new Call(caller)
  read(call, given, form)
  assertRequestable(call, caller)
  assertNoTimeout(call, caller)
  if (twin !== undefined) assertWorker(caller, twin)
  if (call.callback !== undefined) assertSynchronous(call.callback, caller, twin)
  if (call.repair !== undefined) assertSynchronous(call.repair, caller, twin, 'repair')
  try {
    return runSync(call, twin)
  } catch (error) {
    // Some of several names may be held.
    if (call.grant !== undefined) call.grant.end(true)
    throw error
  }
}

/**
 * Runs the callback with the name, and settles the promise. The callback gets null if the name is not available.
 * `request` calls this, also where the name has to be awaited: so the callback runs in the asynchronous context of that
 * call.
 */
async function run (call) {
  // The caller of `request` returns first.
  await undefined
  const { callback, repair, signal, taken } = call
  // The request has failed; perhaps with no stack left to give back some of several names.
  if (taken === undefined) {
    call.grant.end(true)
    return
  }
  let grant = null
  let hasRepair = false
  try {
    if (typeof taken !== 'boolean') assertGranted(await taken, signal)
    if (taken !== false) grant = call.grant
    throwIfAborted(signal, reasonOf)
    if (grant !== null && grant.isStolen) throw stolenError(grant.name)
    if (repair !== undefined && grant !== null) {
      if (grant.token.ownerDied) {
        rejectIfStolen(call, grant)
        const again = (isShared, timeout) => acquireAgain(call, isShared, timeout)
        grant = await new Repairing(call, call.caller, again).sound(grant)
      }
      hasRepair = true
    }
    if (callback === undefined) {
      call.resolve(grant === null ? null : grant.keep())
      return
    }
    let result = grant === null ? callback(null) : callWithin(grant.token, callback, grant.given)
    // A primitive cannot be a promise, and needs no further turn.
    if (typeof result === 'object' || typeof result === 'function') {
      if (grant !== null) rejectIfStolen(call, grant)
      result = await result
    }
    // In the callback's job.
    if (grant !== null && !grant.end(false, true, hasRepair)) throw stolenError(grant.name)
    call.resolve(result)
  } catch (error) {
    // Some of several names may be held.
    call.grant.end(true, true, hasRepair)
    if (error === LATE) call.resolve(LATE)
    else call.reject(call.grant.isStolen ? stolenError(call.grant.name) : error)
  }
}

/** Throws LATE, or the reason, if a claim was refused. No async function: each request that waits would keep one. */
function assertGranted (outcome, signal) {
  if (outcome === undefined) return
  if (outcome === LATE) throw LATE
  throw abortReason(signal, outcome.reason)
}

/** Acquires the name again, for a call that has had it. Returns null if that is not available. */
async function acquireAgain (call, isShared, timeout) {
  const { signal } = call
  throwIfAborted(signal, reasonOf)
  const grant = nextGrant(call, isShared)
  if (!grant.attempt()) {
    if (call.ifAvailable) {
      grant.end(true)
      return null
    }
    assertGranted(await grant.claim({ timeout, signal }, call), signal)
  }
  rejectIfStolen(call, grant)
  return grant
}

/** Makes the next grant of a call. The last one was given back. */
function nextGrant (call, isShared) {
  const { grant, name, names } = call
  if (grant !== undefined && grant.isStolen) throw stolenError(grant.name)
  const keeps = call.callback === undefined
  call.grant = names === undefined ? newGrant(name, isShared, keeps) : newGrant(names, isShared, false, Grants)
  return call.grant
}

/** Rejects the promise once this thread hears of a steal. It may have come while the callback began. */
function rejectIfStolen (call, grant) {
  const reject = () => call.reject(stolenError(grant.name))
  if (grant.isStolen) reject()
  else grant.onStolen = reject
}

function runSync (call, twin) {
  const { caller, shared, ifAvailable, timeout, callback, repair } = call
  // A name that has been taken must be released.
  assertStack()
  const acquire = (isShared, left) => {
    const grant = nextGrant(call, isShared)
    if (grant.attempt()) return grant
    if (ifAvailable) {
      grant.end(true)
      return null
    }
    grant.block(left, caller, timeout)
    return grant
  }
  const grant = acquire(shared, timeout)
  if (callback === undefined) return grant === null ? null : grant.keep()
  const repairing = repair === undefined ? undefined : new Repairing(call, caller, acquire)
  const result = runWith(grant, callback, repairing, caller, twin)
  if (call.grant.isStolen) throw stolenError(call.grant.name)
  return result
}

module.exports = { LockManager, lockOf }
