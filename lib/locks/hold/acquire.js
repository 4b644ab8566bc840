'use strict'

/** Acquires a hold: blocking, or by a promise that can be aborted. */

const { agent, assertStack } = require('../../agent/agent')
const { ACQUIRED, ACQUIRED_FROM_DEAD, AWAITED_HERE, DEADLOCK, HELD_HERE } = require('../../agent/registers')
const { Promise, TypeError, shield } = require('../../util/intrinsics')
const { isMainThread } = require('../../util/worker-threads')
const { LATE, deadlock, deadlockCycle, hideFrames, throwIfAborted, timeoutError, unlessLate } = require('../../waiting/errors')
const { assertFunction, waitOptions } = require('../../waiting/options')
const { alongside, blockBegins, blockEnds } = require('../../waiting/profile')
const Waiter = require('../../waiting/waiter')
const { ownerDied: tellDeath, waited, waits } = require('../observe/diagnostics')
const { Repairing, optionsOf } = require('./repair')
const { EXCLUSIVE, LIMITED, LOCK, SHARED, amountOf, cycleOf, described, isNamed, isOwned, kindOf, nounOfHold } = require('./request')
const { NOT_HELD, SERIAL } = require('./robust-list')
const { waitBegins, waitEnds, whileBlocked } = require('../observe/stalls')
const { claims } = require('../observe/taken')
const { giveBackAfter, indexOfHold, isAwaited, newHold, newToken, permitsOf, release, takeAgain, theList } = require('./token')
const { wordOf } = require('../view')

/**
 * Blocks until this thread has a hold. False if it times out.
 * @throws {Error} with code ERR_DEADLOCK if this thread would wait for ever: it holds or awaits the word already; or it would close
 *   a cycle of threads that block without a time-out, and then `cycle` says which
 */
function acquire (hold, timeout, caller) {
  return take(hold) || block(hold, timeout, caller)
}

/** Takes a hold, if that needs no waiting. */
function take (hold) {
  return hold.serial === NOT_HELD ? hold.word.take(hold.request, hold.token) : takeAgain(hold)
}

/** `acquire` of a hold that needs waiting. */
function block (hold, timeout, caller) {
  if (timeout === 0) return false
  claims(hold)
  const { word, request } = hold
  // Another thread may release permits while this one holds some; but not those that this one holds of a limit.
  if (kindOf(request) === LIMITED && permitsOf(word) + amountOf(request) > word.limit) {
    throw deadlock(caller, word, described(request), 'holds')
  }
  if (kindOf(request) <= EXCLUSIVE) {
    if (word.find() >= 0) throw deadlock(caller, word, described(request), 'holds')
    // Its own promise comes before it in the line, and could be settled only in a later turn of the event loop.
    if (timeout === Infinity && isAwaited(word)) throw deadlock(caller, word, described(request), 'awaits')
  }
  // What native code has granted must become a hold.
  assertStack()
  const list = theList()
  list.makeRoom()
  const since = waits()
  const { profiles } = agent().native
  const onSlice = profiles ? alongside(whileBlocked()) : whileBlocked()
  if (profiles) blockBegins(nounOfHold, hold)
  list.expect(word)
  const answer = agent().claim(word, kindOf(request), amountOf(request), timeout, onSlice, nameIn(hold))
  const ownerDied = answer === ACQUIRED_FROM_DEAD
  const isAcquired = ownerDied || answer === ACQUIRED
  if (isAcquired && isOwned(request)) list.adoptLast(hold, ownerDied)
  list.expected = undefined
  if (profiles) blockEnds()
  if (answer === HELD_HERE) throw deadlock(caller, word, described(request), 'holds')
  if (answer === AWAITED_HERE) throw deadlock(caller, word, described(request), 'awaits')
  if (answer === DEADLOCK) throw deadlockCycle(caller, word, described(request), cycleOf(agent().native.binding))
  try {
    if (ownerDied) tellDeath(word, request, since)
    if (since !== undefined) waited(since, hold, isAcquired ? 'acquired' : 'timed-out')
  } catch (_) {
    // No stack is left for the calls. It is held all the same.
  }
  return isAcquired
}

/** The name, where a lock is requested by its name; undefined elsewhere. */
const nameIn = ({ word, request }) => isNamed(request) ? word.name : undefined

/** Blocks likewise; returns the token. Throws a TimeoutError. */
function acquireOrThrow (hold, options, caller) {
  const { timeout } = waitOptions(options, caller, false)
  return take(hold) ? hold.token : blockOrThrow(hold, timeout, caller)
}

/**
 * The same for a hold that needs waiting.
 * @param {number} [whole] the time-out of the call, if other waits have taken some of it
 */
function blockOrThrow (hold, timeout, caller, whole = timeout) {
  if (!block(hold, timeout, caller)) throw lateError(hold, whole)
  return hold.token
}

const lateError = ({ word, request }, timeout) => timeoutError(word, described(request), timeout)

/**
 * A promise that is resolved once this thread has what is requested of an instance's word: with its token, if it has one. It rejects with
 * a TimeoutError, or the signal's reason. However it ends, nothing is lost: a grant that comes at the same moment is handed over.
 *
 * @param {number | (word: Word) => number} request if it is a function that throws, the promise rejects
 */
function acquireAsync (instance, request, options, caller) {
  try {
    const word = wordOf(instance)
    const wanted = typeof request === 'number' ? request : request(word)
    const wait = waitOptions(options, caller)
    const token = newToken(wanted)
    const value = token === null ? undefined : token
    // Before the token is live: afterwards there might be no stack for a call.
    const promise = resolved(value)
    return takeOrThrow(word, wanted, token, wait) ? promise : claimed(newHold(word, wanted, token), wait, value)
  } catch (error) {
    return rejected(error)
  }
}

const resolved = async (value) => value
const rejected = async (error) => { throw error }

function claimed (hold, wait, value) {
  assertStack()
  let claim
  const promise = new Promise((resolve, reject) => {
    claim = new PromisedClaim(hold, wait, (outcome) => resolve(outcome === LATE ? LATE : value), reject)
  })
  const { timeout } = wait
  const given = timeout === Infinity ? promise : unlessLate(promise, () => lateError(hold, timeout))
  claim.begin()
  if (claim.slot >= 0) agent().remember(given, claim)
  return given
}

/** Takes what is requested, if that needs no waiting. Throws if it must not wait: the signal's reason, or a TimeoutError. */
function takeOrThrow (word, request, token, { timeout, signal }) {
  throwIfAborted(signal)
  if (word.take(request, token)) return true
  if (timeout === 0) throw lateError({ word, request }, 0)
  return false
}

/** Acquires again what was released, as a step of a promise. */
function reacquire (hold, resolve, reject, steps) {
  if (steps.call !== undefined) claims(hold, steps.call)
  if (take(hold)) resolve()
  else new PromisedClaim(hold, waitOptions(), resolve, reject, steps).begin()
}

/** What the promise of a Task resolves with if the task was refused: then it has the reason. */
const REFUSED = Symbol('atomics-waitasync.refused')

/** A promise that waits for a hold, and is one itself. When its time is over it is resolved with LATE. */
class Claim extends Waiter {
  /**
   * @param {Hold} hold copied, so that a claim that waits keeps one object alive and not two
   * @param {Steps} [steps] what this is a step of
   */
  constructor (hold, { timeout, signal }, steps) {
    super(hold.word, signal, steps)
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

  enqueue () {
    const { notifiedAt, request, word } = this
    const since = waits(this.steps === undefined ? undefined : this.steps.context)
    if (since !== undefined) this.since = since
    const wait = waitBegins(this, this.steps === undefined ? undefined : this.steps.call)
    const list = theList()
    if (wait !== undefined) {
      this.wait = wait
      claims(this, wait.call)
      if (list.tasks !== undefined) list.tasks.claims(wait.call.within)
    }
    list.reserve()
    this.isReserved = true
    list.expect(word)
    const relay = notifiedAt === undefined ? 0 : notifiedAt.address
    // Native code does not spin for a lock that this thread itself holds.
    const amount = request === LOCK && list.mayHold(word.address) ? 1 : amountOf(request)
    const ownerDied = agent().claimAsync(word, kindOf(request), amount, this.timeout, this, relay, nameIn(this))
    // Before anything else can run, which might change the list.
    if (this.owned && ownerDied !== undefined) list.adoptLast(this, ownerDied)
    list.expected = undefined
    return ownerDied
  }

  finish (ownerDied) {
    this.resolve()
    if (ownerDied) tellDeath(this.word, this.request, this.since)
  }

  giveUp (reason) {
    if (this.hasGivenUp) return
    this.hasGivenUp = true
    // If it is too late, what is granted is released when it comes.
    this.dequeue()
    this.reject(reason)
    this.tell('aborted')
  }

  /** How it ended. */
  tell (outcome) {
    if (this.since !== undefined) waited(this.since, this, outcome)
  }

  adopt (index, ownerDied) {
    this.ownerDied = ownerDied
    if (this.owned) theList().adopt(this, index, ownerDied)
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      this.resolve(LATE)
      if (!this.hasGivenUp) this.tell('timed-out')
    } else if (!this.hasGivenUp) {
      if (this.owned) theList().inform(this, this.ownerDied)
      this.resolve()
      if (this.ownerDied) tellDeath(this.word, this.request, this.since)
      this.tell('acquired')
    } else {
      // The news of a death that it came with goes on, and so does a notification.
      if (this.owned) release(indexOfHold(this), this.ownerDied, false, true)
      else this.word.addPermits(amountOf(this.request))
    }
  }

  end () {
    if (this.isReserved) theList().unreserve()
    this.isReserved = false
    if (this.wait !== undefined) waitEnds(this.wait)
    super.end()
  }

  /** Whether what it requests has a holder. */
  get owned () {
    return isOwned(this.request)
  }

  get waitsFor () {
    return nounOfHold(this)
  }
}

// Of few claims: where this thread was notified, as of a Hold; since when it waits, for diagnostics; what stalls.js knows of it; the number of its
// call (taken.js); why it was refused.
shield(Claim, ['notifiedAt', 'since', 'wait', 'place', 'reason'])

/** The claim of a promise that has these functions. */
class PromisedClaim extends Claim {
  constructor (hold, wait, resolve, reject, steps) {
    super(hold, wait, steps)
    this.resolve = resolve
    this.reject = reject
  }
}

/** The claim of a callback's, for an async function: its promise never rejects, which would take a second function. */
class Task extends Claim {
  constructor (hold, wait) {
    super(hold, wait)
    this.resolve = undefined
  }

  reject (reason) {
    this.reason = reason
    this.resolve(REFUSED)
  }
}

/** @throws {TypeError} on the main thread, which must not block; the message names the alternative */
function assertWorker (what, instead) {
  if (isMainThread) throw new TypeError(what + ' would block the main thread: use ' + instead)
}

/** The claim that `run` has begun before it returned its promise. A property for the reason given in view.js. */
const begun = { claim: undefined }
/** The Repairing of the `run` that has one, likewise. Apart, and only read where there is none: writing it would cost a lock a tenth. */
const latest = { repairing: undefined }

/**
 * Runs `callback(token)` with what is requested of an instance's word, before this returns if that needs no waiting, and releases it, even
 * if `callback` throws. `request` is as that of `acquireAsync`.
 */
function runHolding (instance, request, callback, options, caller) {
  // A call that a time limit of `vm` interrupted may have left one.
  begun.claim = undefined
  // That of a call whose repair calls this.
  const outer = latest.repairing
  const promise = run(instance, request, callback, options, caller)
  const { claim } = begun
  begun.claim = undefined
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
    const task = newTask(newHold(word, wanted, token), wait)
    if (repairing !== undefined) repairing.claim = task
    const outcome = await started(task)
    if (outcome === LATE) throw hideFrames(lateError(task, task.timeout), run)
    if (outcome === REFUSED) throw task.reason
    inJob = true
  }
  const { tasks } = theList()
  let scope
  let failed = true
  try {
    if (repairing !== undefined && token.ownerDied) {
      inJob = true
      token = (await repairing.sound(newHold(word, wanted, token))).token
    }
    if (tasks !== undefined) scope = tasks.begin(token[SERIAL])
    let result = scope === undefined ? callback(token) : tasks.call(scope, callback, token)
    // A primitive cannot be a promise, and needs no further turn.
    if (typeof result === 'object' || typeof result === 'function') {
      inJob = true
      result = await result
    }
    failed = false
    return result
  } finally {
    if (scope !== undefined) tasks.end(scope)
    try {
      giveBackAfter(token, failed, inJob, repairing !== undefined)
    } catch (_) {
      // No stack is left for it. In a turn of its own there is.
      await undefined
      giveBackAfter(token, failed, false, repairing !== undefined)
    }
  }
}

function newTask (hold, wait) {
  assertStack()
  return new Task(hold, wait)
}

/** A promise of how the wait of a task ends: undefined, LATE or REFUSED. */
function started (task) {
  const promise = new Promise((resolve) => { task.resolve = resolve })
  task.begin()
  // Not before: a signal may have run code that begins another.
  begun.claim = task
  return promise
}

function repairingOf (word, wait, caller) {
  const repairing = new Repairing(wait, caller, (isShared, timeout) => {
    return acquireAgain(newHold(word, isShared ? SHARED : EXCLUSIVE), timeout, wait, repairing)
  })
  latest.repairing = repairing
  return repairing
}

/** Acquires a hold for a promise that has had another. What is left of its time is `timeout`. */
async function acquireAgain (hold, timeout, wait, repairing) {
  const { signal } = wait
  throwIfAborted(signal)
  if (take(hold)) return hold
  if (timeout > 0) {
    const task = newTask(hold, { timeout, signal })
    task.refed = repairing.claim === undefined || repairing.claim.refed
    repairing.claim = task
    const ended = started(task)
    const { promise } = repairing
    if (promise !== undefined && task.slot >= 0) agent().remember(promise, task)
    const outcome = await ended
    if (outcome === undefined) return hold
    if (outcome === REFUSED) throw task.reason
  }
  throw hideFrames(lateError(hold, wait.timeout), acquireAgain)
}

module.exports = { Claim, acquire, acquireAsync, acquireOrThrow, blockOrThrow, lateError, reacquire, assertWorker, runHolding, take }
