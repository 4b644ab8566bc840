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

const { agent, assertStack } = require('../../agent/agent')
const { Promise, TypeError, append, bare } = require('../../util/intrinsics')
const { option, assertOptions } = require('../../util/options')
const { REJECTS_OVERFLOWS } = require('../../util/quirks')
const { describe, isObject } = require('../../util/values')
const { LATE, abortReason, unlessLate } = require('../../waiting/errors')
const { assertWorker, milliseconds, assertFunction, waitOptions } = require('../../waiting/options')
const { createException } = require('./dom-exception')
const { blockOrThrow, lateError } = require('../hold/acquire')
const { Claim } = require('../hold/claim')
const { Repairing } = require('../hold/repair')
const { parseList } = require('../observe/entries')
const { SERIAL } = require('../hold/robust-list')
const { runWith } = require('../hold/run-sync')
const { theList } = require('../hold/hold')
const { Lock, asInterface } = require('./lock')
const { newGrant, steal, stolenError, take } = require('./names')
const locks = require('./manager')

const { pid } = process
const EXCLUSIVE = 'exclusive'
const SHARED = 'shared'
const SYNC_OPTIONS = ['ifAvailable', 'mode', 'repair', 'timeout', 'signal', 'steal']

class LockManager {
  constructor () {
    throw new TypeError('LockManager: illegal constructor; there is one for each thread, locks')
  }

  /** `request(name, [options], callback)`: a promise of what the callback returns. */
  request (name, options) {
    const call = new Call()
    const promise = new Promise((resolve, reject) => {
      call.resolve = resolve
      call.reject = reject
    })
    // The constructor turns a stack overflow in its executor into a rejection.
    if (call.reject === undefined) return promise
    call.promise = promise
    try {
      assertThis(this, 'request')
      read(call, arguments, 'request')
      checkAsync(call)
      if (call.timeout !== Infinity) call.promise = unlessLate(promise, () => lateError(call.grant, call.timeout))
      takeOrEnqueue(call)
    } catch (error) {
      call.reject(error)
    }
    return call.promise
  }

  /** `requestSync(name, [options], callback)`: blocks, and returns what the callback returns. */
  requestSync (name, options) {
    assertThis(this, 'requestSync')
    const call = new Call()
    read(call, arguments, 'requestSync')
    assertName(call, 'requestSync')
    assertNoTimeout(call, 'requestSync')
    assertWorker('requestSync', 'request()')
    return runHoldingSync(call)
  }

  /** What all threads of the process hold and await. */
  async query () {
    assertThis(this, 'query')
    // In the order in which they were made.
    const requests = parseList(agent().native.binding.nameRequests(), 'query')
    const held = []
    const pending = []
    for (let n = 0; n < requests.length; n++) {
      const { name, shared, threadId, held: isHeld } = requests[n]
      append(isHeld ? held : pending, { clientId: pid + '-' + threadId, mode: shared ? SHARED : EXCLUSIVE, name })
    }
    return { held, pending }
  }
}

/** A call of `request` or `requestSync`: its arguments, its promise, and what becomes of it while it waits. */
class Call {
  constructor () {
    this.name = ''
    this.shared = false
    this.callback = undefined
    this.ifAvailable = false
    this.steal = false
    this.signal = undefined
    this.timeout = Infinity
    this.repair = this.repairing = undefined
    this.promise = this.resolve = this.reject = undefined
    // The last claim of it.
    this.claim = undefined
    // The Grant, or null if the name was not available; and a promise that is resolved once the Grant has been awaited.
    this.grant = this.later = undefined
    // Settles `later`.
    this.goOn = undefined
  }

  /** Its wait is over: it has been granted the name, or its time is over. */
  ended (outcome) {
    if (outcome === LATE) {
      this.resolve(LATE)
      return
    }
    // A steal may be reported in this turn.
    rejectIfStolen(this, this.grant)
    this.goOn()
  }

  /** It was aborted, or could not be enqueued. */
  failed (error) {
    const { signal } = this
    let reason = error
    try {
      // Signals of old Node have no reason.
      if (signal !== undefined && signal.aborted && signal.reason === undefined) reason = reasonOf(signal)
    } catch (_) {
      // A getter of the signal's throws: `error` is what it threw.
    }
    this.reject(reason)
  }
}
bare(Call)

function assertThis (value, caller) {
  if (value === locks) return
  throw new TypeError(caller + ': illegal invocation; this must be the LockManager of the thread, locks')
}

// ——— Arguments ———

/** Converts the arguments as WebIDL does: the name, the options, the callback. */
function read (call, given, caller) {
  if (given.length < 2) {
    const count = given.length === 1 ? 'is 1 argument' : 'are 0 arguments'
    throw new TypeError(caller + ': name and callback are required, but there ' + count)
  }
  const name = given[0]
  call.name = typeof name === 'string' ? name : `${name}`
  const callback = given[given.length === 2 ? 1 : 2]
  if (given.length > 2 && given[1] !== undefined && given[1] !== null) readOptions(call, given[1], caller)
  assertFunction(callback, caller)
  call.callback = callback
}

/** Reads the members of a dictionary in the order of their names. Unknown ones are ignored. */
function readOptions (call, options, caller) {
  if (!isObject(options)) throw new TypeError(caller + ': options must be an object, not ' + describe(options))
  if (caller === 'requestSync') assertSyncOptions(options)
  call.ifAvailable = Boolean(option(options, 'ifAvailable'))
  call.shared = isShared(option(options, 'mode'), caller)
  const repair = option(options, 'repair')
  if (repair !== undefined) assertFunction(repair, caller, 'repair')
  call.repair = repair
  const signal = option(options, 'signal')
  if (signal !== undefined) call.signal = waitOptions({ signal }, caller).signal
  call.steal = Boolean(option(options, 'steal'))
  call.timeout = milliseconds(option(options, 'timeout', Infinity), caller)
}

/** No code is written for a standard of `requestSync`: so an option that it does not have is an error. */
function assertSyncOptions (options) {
  assertOptions(options, SYNC_OPTIONS, 'requestSync', 4)
  for (const name of ['signal', 'steal']) {
    if (option(options, name) === undefined) continue
    throw new TypeError('requestSync blocks, and has no ' + name + ': use request()')
  }
}

function isShared (mode, caller) {
  if (mode === undefined) return false
  const text = typeof mode === 'string' ? mode : `${mode}`
  if (text !== EXCLUSIVE && text !== SHARED) {
    throw new TypeError(caller + ': options.mode must be "exclusive" or "shared", not ' + describe(mode))
  }
  return text === SHARED
}

/** The checks of `request`, in the order of its steps. */
function checkAsync (call) {
  assertName(call, 'request')
  const { ifAvailable, shared, signal } = call
  if (call.steal && ifAvailable) throw notCombined('request', 'steal', 'ifAvailable')
  if (call.steal && shared) throw notSupported('request: with steal, mode must be "exclusive"')
  if (signal !== undefined && (call.steal || ifAvailable)) throw notCombined('request', 'signal', nowOf(call))
  assertNoTimeout(call, 'request')
  if (signal !== undefined && signal.aborted) throw reasonOf(signal)
}

function assertName ({ name }, caller) {
  if (name[0] === '-') throw notSupported(caller + ': name must not begin with "-", as ' + describe(name) + ' does')
}

/** A request that never waits cannot time out. */
function assertNoTimeout (call, caller) {
  if (call.timeout !== Infinity && (call.steal || call.ifAvailable)) {
    throw notCombined(caller, 'timeout', nowOf(call))
  }
}

const nowOf = (call) => call.steal ? 'steal' : 'ifAvailable'
const notSupported = (message) => createException('NotSupportedError', message)
const notCombined = (caller, one, other) => notSupported(caller + ': ' + one + ' and ' + other + ' cannot be combined')
const aborted = () => createException('AbortError', 'The operation was aborted')
const reasonOf = (signal) => signal.reason === undefined ? aborted() : abortReason(signal)

// ——— Holding ———

/** Takes a name at once, or puts the request into its line. */
function takeOrEnqueue (call) {
  if (REJECTS_OVERFLOWS) assertStack()
  if (call.repair !== undefined) {
    call.repairing = new Repairing(call, 'request', (isShared, timeout) => acquireAgain(call, isShared, timeout))
  }
  const grant = newGrant(call.name, call.shared)
  // Before the name is taken: afterwards there might be no stack for it.
  runHolding(call)
  if (call.steal ? steal(grant) : take(grant)) call.grant = grant
  else if (call.ifAvailable) call.grant = null
  else enqueue(call, grant)
}

/**
 * Runs the callback, releases the name, and settles the promise. The callback gets null if the name was not available.
 * `request` calls this, also where the name has to be awaited: so the callback runs in the asynchronous context of
 * that call.
 */
async function runHolding (call) {
  // The caller of `request` returns first.
  await undefined
  if (call.later !== undefined) await call.later
  let { grant } = call
  // The request has failed.
  if (grant === undefined) return
  const { tasks } = theList()
  let hasRepair = false
  try {
    const { callback, repairing, signal } = call
    if (signal !== undefined && signal.aborted) throw reasonOf(signal)
    if (grant !== null && grant.isStolen) throw stolenError(call.name)
    if (repairing !== undefined && grant !== null) {
      if (grant.token.ownerDied) {
        rejectIfStolen(call, grant)
        grant = await repairing.sound(grant)
      }
      hasRepair = true
    }
    const given = grant === null ? null : grant.given
    const isTask = tasks !== undefined && grant !== null
    let result = isTask ? tasks.call(grant.token[SERIAL], callback, given) : callback(given)
    // A primitive cannot be a promise, and needs no further turn.
    if (typeof result === 'object' || typeof result === 'function') {
      if (grant !== null) rejectIfStolen(call, grant)
      result = await result
    }
    if (grant === null || grant.end(false, true)) call.resolve(result)
    else call.reject(stolenError(call.name))
  } catch (error) {
    if (grant !== null) grant.end(true, true, hasRepair)
    call.reject(grant !== null && grant.isStolen ? stolenError(call.name) : error)
  }
}

/** Acquires the name again, for a call that has had it. Returns null if that is not available. */
async function acquireAgain (call, isShared, timeout) {
  const { signal } = call
  if (signal !== undefined && signal.aborted) throw reasonOf(signal)
  const grant = nextGrant(call, isShared)
  if (!take(grant)) {
    if (call.ifAvailable) return null
    enqueue(call, grant, timeout)
    await call.later
  }
  call.grant = grant
  rejectIfStolen(call, grant)
  return grant
}

/** Makes a grant that replaces one that was given back. */
function nextGrant (call, isShared) {
  if (call.grant !== undefined && call.grant.isStolen) throw stolenError(call.name)
  return newGrant(call.name, isShared)
}

/** Rejects the promise once this thread hears of a steal. It may have come while the callback began. */
function rejectIfStolen (call, grant) {
  const reject = () => call.reject(stolenError(call.name))
  if (grant.isStolen) reject()
  else grant.onStolen = reject
}

/** Puts a request into its line. */
function enqueue (call, grant, timeout = call.timeout) {
  assertStack()
  call.later = new Promise((resolve) => { call.goOn = resolve })
  call.grant = grant
  if (timeout === 0) {
    call.ended(LATE)
    return
  }
  const claim = new CallClaim(grant, call)
  claim.timeout = timeout
  if (call.claim !== undefined) claim.refed = call.claim.refed
  call.claim = claim
  claim.begin()
  if (claim.slot >= 0) agent().remember(call.promise, claim)
}

/** The claim of a call for its grant. */
class CallClaim extends Claim {
  constructor (grant, call) {
    super(grant, call)
    this.call = call
  }

  resolve (outcome) {
    this.call.ended(outcome)
  }

  reject (reason) {
    this.call.failed(reason)
  }
}

function runHoldingSync (call) {
  const { name, shared, ifAvailable, timeout, callback, repair } = call
  // What has been taken must be released.
  assertStack()
  const request = (isShared, left) => {
    const grant = nextGrant(call, isShared)
    const isAvailable = take(grant)
    if (!isAvailable && !ifAvailable) blockOrThrow(grant, left, 'requestSync', timeout)
    call.grant = isAvailable || !ifAvailable ? grant : null
    return call.grant
  }
  const repairing = repair === undefined ? undefined : new Repairing(call, 'requestSync', request)
  const result = runWith(request(shared, timeout), callback, repairing, 'requestSync', 'request()')
  if (call.grant !== null && call.grant.isStolen) throw stolenError(name)
  return result
}

asInterface(LockManager, ['request', 'requestSync', 'query'])

module.exports = { Lock, LockManager }
