'use strict'

/** Acquires a hold: blocking, or by a promise that can be aborted. */

const { agent, assertStack } = require('../agent/find-agent')
const { ACQUIRED, ACQUIRED_FROM_DEAD, CALL, DEADLOCK, HELD_HERE } = require('../agent/registers')
const { Promise, shield } = require('../util/intrinsics')
const {
  LATE, cycleOf, deadlock, deadlockCycle, throwIfAborted, timeoutError, unlessLate
} = require('../waiting/errors')
const observer = require('../waiting/observer')
const { waitOptions } = require('../waiting/wait-options')
const { Waiter } = require('../waiting/waiter')
const { UnlockToken, indexOfHold, newHold, newToken, permitsOf, release } = require('./hold')
const { assertNoReentry } = require('./reentry')
const {
  EXCLUSIVE, INDEX, LIMITED, NOT_HELD, amountOf, described, isBare, isNamed, isOwned, kindOf, nounOfHold
} = require('./request')
const theList = require('./the-list')
const { wordOf } = require('./view-word')

/**
 * Blocks until this thread has a hold. False on a timeout.
 * @throws {Error} with code ERR_DEADLOCK if this thread would wait for ever: it holds or awaits the word already; or it
 *   would close a cycle of threads that block without a timeout, and then `cycle` says which
 */
function acquire (hold, timeout, caller) {
  return take(hold) || block(hold, timeout, caller)
}

/** Takes a hold, if that needs no waiting; perhaps again, after it was released. `promises`: for a promise. */
function take (hold, promises = false) {
  const { word, request, token, serial } = hold
  const isNew = serial === NOT_HELD
  const taken = isNew ? token : newToken(request)
  if (!(promises ? word.takeForPromise(request, taken, !isNew) : word.take(request, taken, !isNew))) return false
  if (isNew) return true
  const list = theList()
  list.assign(hold, taken[INDEX], taken.ownerDied)
  list.markDelivered(hold, taken.ownerDied)
  list.door.open()
  return true
}

function block (hold, timeout, caller) {
  if (timeout === 0) return false
  // These may run a program's code.
  const since = observer.waits()
  observer.claims(hold)
  const sample = observer.sample()
  const { word, request } = hold
  // Another thread may release permits while this one holds some; but not those that this one holds of a limit.
  if (kindOf(request) === LIMITED && permitsOf(word) + amountOf(request) > word.limit) {
    throw deadlock(caller, word, described(request), 'holds')
  }
  // Whether this thread has a name, native code knows.
  if (kindOf(request) <= EXCLUSIVE && word.find() >= 0) throw deadlock(caller, word, described(request), 'holds')
  // Its own promise comes before it in the line, and could be settled only in a later turn of the event loop.
  if ((kindOf(request) <= EXCLUSIVE || isNamed(request)) && timeout === Infinity && isAwaited(word)) {
    throw deadlock(caller, word, described(request), 'awaits')
  }
  // A grant of native code must become a hold.
  assertStack()
  const list = theList()
  list.makeRoom()
  const { binding } = agent().native
  const recorded = observer.recordBegins(sample, hold)
  list.expect(word)
  const answer = agent().claim(word, kindOf(request), amountOf(request), timeout)
  const ownerDied = answer === ACQUIRED_FROM_DEAD
  const isAcquired = ownerDied || answer === ACQUIRED
  if (isAcquired && isOwned(request)) list.adoptLast(hold, ownerDied)
  list.expected = undefined
  const cycle = answer === DEADLOCK ? cycleOf(binding) : undefined
  try {
    if (ownerDied) observer.ownerDied(word, request, since)
    if (since !== undefined && answer < DEADLOCK) observer.waited(since, hold, isAcquired ? 'acquired' : 'timed-out')
    if (recorded !== undefined) observer.recordEnds(recorded)
    list.door.open()
  } catch (_) {
    // No stack is left for the calls. It is held all the same.
  }
  if (answer === HELD_HERE) throw deadlock(caller, word, described(request), 'holds')
  if (cycle !== undefined) throw deadlockCycle(caller, word, described(request), cycle)
  return isAcquired
}

/** Blocks until this thread has a hold; returns the token. Throws a TimeoutError. */
function acquireOrThrow (hold, options, caller) {
  const { timeout } = waitOptions(options, caller, false)
  return take(hold) ? hold.token : blockOrThrow(hold, timeout, caller)
}

/** Blocks as `acquireOrThrow`. `whole`: the timeout of the call, if other waits have taken some of it. */
function blockOrThrow (hold, timeout, caller, whole = timeout) {
  if (!block(hold, timeout, caller)) throw lateError(hold, whole)
  return hold.token
}

const lateError = ({ word, request }, timeout) => timeoutError(word, described(request), timeout)

// ——— Promises ———

/** A promise that waits for a hold, and later serves as one. When its time is over it is resolved with LATE. */
class Claim extends Waiter {
  /**
   * @param {Hold} hold copied, so that a claim that waits keeps one object alive and not two
   * @param {Function} [reject] without it the promise never rejects: that would take a second function
   */
  constructor (hold, { timeout, signal }, resolve, reject, steps) {
    super(hold.word, signal, steps)
    this.resolve = resolve
    if (reject !== undefined) this.reject = reject
    this.request = hold.request
    this.token = hold.token
    this.serial = hold.serial
    this.index = hold.index
    this.timeout = timeout
    if (hold.notifiedAt !== undefined) this.notifiedAt = hold.notifiedAt
    this.isReserved = false
    this.hasGivenUp = false
    this.ownerDied = false
  }

  reject (reason) {
    this.resolve({ __proto__: null, reason })
  }

  prepare () {
    const { steps } = this
    const since = observer.waits(steps === undefined ? undefined : steps.context)
    if (since !== undefined) this.since = since
    const call = steps === undefined ? observer.callOf() : steps.call
    if (call === undefined) return
    this.within = call.within
    observer.claims(this, call)
  }

  enqueue () {
    const { notifiedAt, place, request, within, word } = this
    const list = theList()
    if (place !== undefined) {
      list.native.words[CALL] = place
      if (list.tasks !== undefined) list.native.binding.claimsWithin(within)
    }
    list.reserve()
    this.isReserved = true
    list.expect(word)
    const relay = notifiedAt === undefined ? 0 : notifiedAt.address
    // Native code does not spin for a lock that this thread itself holds.
    const amount = isBare(request) && list.mayHold(word.address) ? 1 : amountOf(request)
    const ownerDied = agent().claimAsync(word, kindOf(request), amount, this.timeout, this, relay)
    // Before anything else can run, which might change the list.
    if (this.owned && ownerDied !== undefined) list.adoptLast(this, ownerDied)
    list.expected = undefined
    return ownerDied
  }

  finish (ownerDied) {
    this.resolve()
    if (ownerDied) observer.ownerDied(this.word, this.request, this.since)
    theList().door.open()
  }

  giveUp (reason) {
    if (this.hasGivenUp) return
    this.hasGivenUp = true
    // If it is too late, the grant is released when it comes.
    this.dequeue()
    this.note('aborted')
    this.reject(reason)
    theList().door.open()
  }

  note (outcome) {
    if (this.since !== undefined) observer.waited(this.since, this, outcome)
  }

  adopt (index, ownerDied) {
    this.ownerDied = ownerDied
    if (this.owned) theList().adopt(this, index, ownerDied)
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      if (!this.hasGivenUp) this.note('timed-out')
      this.resolve(LATE)
      theList().door.open()
    } else if (!this.hasGivenUp) {
      this.note('acquired')
      if (this.owned) theList().markDelivered(this, this.ownerDied)
      this.finish(this.ownerDied)
    } else {
      this.releaseGrant()
      theList().door.open()
    }
  }

  /** Passes on a grant that came too late. So it does with the note of a death, and with a notification. */
  releaseGrant () {
    if (!this.owned) {
      this.word.addPermits(amountOf(this.request))
      return
    }
    const index = indexOfHold(this)
    // A subscriber that saw another grant may have released it: `unlock()` of a lock asks for no token.
    if (index >= 0) release(index, this.ownerDied, false, true)
  }

  end () {
    if (this.isReserved) theList().unreserve()
    this.isReserved = false
    super.end()
  }

  get owned () {
    return isOwned(this.request)
  }

  get waitsFor () {
    return nounOfHold(this)
  }
}

// Few claims have these: where this thread was notified, as of a Hold; since when it waits, for diagnostics; within
// which callbacks it was made, and the number of its call (observe/stalls.js).
shield(Claim, ['notifiedAt', 'since', 'within', 'place'])

/** Whether a promise of this thread claims the word. */
function isAwaited ({ address, key, lineName }) {
  // The counter of the word's waiters spares most searches. Where that of a name is, it may not be known yet.
  return theList().reserved > 0 && (lineName !== undefined || agent().mayBeWaiting(address / 4)) &&
    agent().someWaiter((waiter) => waiter.isReserved && waiter.word.key === key)
}

/**
 * Resolves with the token (if any) once the request is granted. It rejects with a TimeoutError, or the signal's reason.
 * Nothing is lost, whatever the end: a grant that comes at the same moment is handed over.
 *
 * @param {number | (word: Word) => number} request if it is a function that throws, the promise rejects
 */
function acquireAsync (instance, request, options, caller) {
  try {
    const word = wordOf(instance)
    if (isBare(request) && options === undefined && word.isFree) {
      const token = new UnlockToken()
      // Before the token is live: afterwards there might be no stack for a call.
      const promise = resolved(token)
      if (word.list.takeFree(word, token)) return promise
    }
    const wanted = typeof request === 'number' ? request : request(word)
    const wait = waitOptions(options, caller)
    const token = newToken(wanted)
    const value = token === null ? undefined : token
    // Before the token is live, as above.
    const promise = resolved(value)
    if (takeOrThrow(word, wanted, token, wait)) return promise
    if (word.detectsReentry) assertNoReentry(word, wanted, wait, caller)
    return claimed(newHold(word, wanted, token), wait, value)
  } catch (error) {
    return rejected(error)
  }
}

const resolved = async (value) => value
const rejected = async (error) => { throw error }

/** Claims a hold. Resolves with `value` once it is granted. */
function claimed (hold, wait, value) {
  assertStack()
  let claim
  const promise = new Promise((resolve, reject) => {
    claim = new Claim(hold, wait, (outcome) => resolve(outcome === LATE ? LATE : value), reject)
  })
  const { timeout } = wait
  const given = timeout === Infinity ? promise : unlessLate(promise, () => lateError(hold, timeout))
  claim.begin()
  if (claim.slot >= 0) agent().remember(given, claim)
  return given
}

/** Takes a request, if that needs no waiting. Throws if it must not wait: the signal's reason, or a TimeoutError. */
function takeOrThrow (word, request, token, { timeout, signal }) {
  throwIfAborted(signal)
  // Without time to wait, it is a `try` form.
  if (timeout === 0 ? word.take(request, token) : word.takeForPromise(request, token)) return true
  if (timeout === 0) throw lateError({ word, request }, 0)
  return false
}

/** Acquires a released hold again, as a step of a promise. */
function reacquire (hold, resolve, reject, steps) {
  if (steps.call !== undefined) observer.claims(hold, steps.call)
  if (take(hold, true)) resolve()
  else new Claim(hold, waitOptions(), resolve, reject, steps).begin()
}

module.exports = {
  Claim, acquire, acquireAsync, acquireOrThrow, blockOrThrow, isAwaited, lateError, reacquire, take, takeOrThrow
}
