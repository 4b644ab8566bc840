'use strict'

/** Waiting until what is demanded can be had: blocking, or by a promise that can be cancelled. See `Demand` in token.js. */

const { Promise, TypeError } = require('../intrinsics')
const { agent } = require('../settle')
const { threads } = require('../worker-threads')
const Claimant = require('./claimant')
const createError = require('./error')
const { EXCLUSIVE, LOCK, SHARED, SIGNALS, amountOf, kindOf } = require('./holdings')
const { giveBackUnused, theHoldings } = require('./token')
const { abortReason, requireFunction, timeoutError, waitOptions } = require('./wait-options')

const IS_MAIN_THREAD = threads === undefined || threads.isMainThread

/**
 * Blocks until this thread has what is demanded. False if the time is over.
 * @throws {Error} with code ERR_DEADLOCK if this thread holds or awaits the word already and would wait for itself
 */
function acquire (demand, timeout, caller) {
  return theHoldings().take(demand) || block(demand, timeout, caller)
}

/** `acquire` of what could not be had without waiting. */
function block (demand, timeout, caller) {
  if (timeout === 0) return false
  const { claim, holdings } = agent()
  const { word, request } = demand
  const owned = kindOf(request) !== SIGNALS
  if (owned && word.find() >= 0) throw deadlock(caller, 'holds it')
  // Its own promise stands before it, and could only give it up in a later turn of the event loop.
  if (owned && timeout === Infinity && word.isAwaited()) throw deadlock(caller, 'awaits it')
  holdings.makeRoom()
  const ownerDied = claim(word, kindOf(request), amountOf(request), timeout)
  if (ownerDied === undefined) return false
  if (owned) holdings.adoptLast(demand, ownerDied)
  return true
}

/**
 * Blocks likewise; gives the token.
 * @param {string} what the message of the TimeoutError
 */
function acquireOrThrow (demand, options, caller, what) {
  const { timeout } = waitOptions(options, caller, false)
  if (!acquire(demand, timeout, caller)) throw timeoutError(what, timeout)
  return demand.token
}

/**
 * A promise that is resolved once this thread has what is demanded: with the token, if there is one.
 *
 * Rejects with a TimeoutError, or the signal's reason. However it gives up, nothing is lost: what comes at the same moment
 * is passed on.
 *
 * @param {() => Demand} ask gives what is demanded; what it throws is what the promise rejects with
 * @param {string} what the message of the TimeoutError
 */
function acquireAsync (ask, options, caller, what) {
  let resolve
  let reject
  const promise = new Promise((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // The constructor makes a stack overflow in its executor a rejection.
  if (reject === undefined) return promise
  try {
    const demand = ask()
    const wait = waitOptions(options, caller)
    // Of what belongs to nobody there is no token.
    const value = demand.token === null ? undefined : demand.token
    if (takeNow(demand, wait)) {
      resolve(value)
    } else {
      const acquisition = new Acquisition(demand, wait, what, () => resolve(value), reject)
      agent().remember(promise, acquisition)
      acquisition.begin()
    }
  } catch (error) {
    reject(error)
  }
  return promise
}

const NO_LIMIT = { timeout: Infinity, signal: undefined }

/** Takes again what had been given back, as a step of a promise. The last two are those of an Acquisition. */
function reacquire (demand, resolve, reject, steps, notifiedAt) {
  if (theHoldings().take(demand)) resolve()
  else new Acquisition(demand, NO_LIMIT, '', resolve, reject, steps, notifiedAt).begin()
}

/** Whether what is demanded could be had without waiting. Throws the signal's reason. */
function takeNow (demand, { signal }) {
  if (signal !== undefined && signal.aborted) throw abortReason(signal)
  return theHoldings().take(demand)
}

/** One who awaits what is demanded. */
class Acquisition extends Claimant {
  /**
   * @param {Steps} [steps] what this is a step of
   * @param {object} [notifiedAt] the word at which this thread has been notified, if that is why it wants this: the notification
   *   goes to another waiter unless this thread comes to have it
   */
  constructor (demand, { timeout, signal }, what, resolve, reject, steps, notifiedAt) {
    super(demand.word, signal, steps, resolve, reject)
    this.demand = demand
    this.timeout = timeout
    this.what = what
    this.notifiedAt = notifiedAt
    this.owned = kindOf(demand.request) !== SIGNALS
    this.hasGivenUp = false
    this.adopted = undefined
  }

  /** Waits for what could not be had without. */
  begin () {
    if (this.timeout === 0) {
      super.end()
      this.reject(timeoutError(this.what, 0))
      return
    }
    const { claimAsync, holdings } = agent()
    const { demand, word, notifiedAt } = this
    const { request } = demand
    holdings.makeRoom()
    word.claimBegins()
    let ownerDied
    try {
      if (!super.begin()) {
        this.end()
        return
      }
      ownerDied = claimAsync(word.address, kindOf(request), amountOf(request), this.timeout, this,
        notifiedAt === undefined ? 0 : notifiedAt.address)
    } catch (error) {
      this.end()
      throw error
    }
    if (ownerDied === undefined) {
      this.linedUp()
      return
    }
    this.end()
    if (this.owned) holdings.adoptLast(demand, ownerDied)
    this.resolve()
  }

  giveUp (reason) {
    if (this.hasGivenUp) return
    this.hasGivenUp = true
    // If it is too late, what was asked for is on its way here and is given back when it comes.
    if (this.leave()) this.notifyAnother()
    this.reject(reason)
  }

  adopt (place, ownerDied) {
    return this.owned ? agent().holdings.adopt(this.demand, place, ownerDied) : undefined
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      this.reject(timeoutError(this.what, this.timeout))
    } else if (!this.hasGivenUp) {
      this.resolve()
    } else {
      if (this.owned) giveBackUnused(this.demand)
      else this.word.addPermits(amountOf(this.demand.request))
      this.notifyAnother()
    }
  }

  notifyAnother () {
    if (this.notifiedAt !== undefined) agent().notify(this.notifiedAt.address, 1)
  }

  end () {
    this.word.claimEnds()
    super.end()
  }

  get waitsFor () {
    switch (kindOf(this.demand.request)) {
      case LOCK: return 'an AsyncLock'
      case SHARED: return 'an RwLock (shared)'
      case EXCLUSIVE: return 'an RwLock (exclusive)'
      default: return 'permits of a Semaphore'
    }
  }
}

/** @throws {TypeError} on the main thread, which must not block, naming what to use instead */
function requireWorker (what, instead) {
  if (IS_MAIN_THREAD) throw new TypeError(what + ' would block the main thread: use ' + instead)
}

/** What a thread gets that would wait for itself; `does` is 'holds it' or 'awaits it'. */
function deadlock (caller, does) {
  return createError(caller + ': this thread ' + does + ' already and would wait for itself', 'ERR_DEADLOCK')
}

/** What `run` has lined up before it returned its promise. */
let begun

/**
 * Runs `callback(token)` with what is demanded, before this returns if that needs no waiting, and gives it back,
 * whatever comes of it.
 */
function runHolding (ask, callback, options, caller, what) {
  // What a call left behind that a time limit of `vm` broke off.
  begun = undefined
  const promise = run(ask, callback, options, caller, what)
  if (begun !== undefined) rememberBegun(promise)
  return promise
}

function rememberBegun (promise) {
  try {
    if (begun.slot >= 0) agent().remember(promise, begun)
  } catch (_) {
    // No stack is left. The callback will run all the same, so whoever called gets the promise.
  }
  begun = undefined
}

async function run (ask, callback, options, caller, what) {
  const demand = ask()
  requireFunction(callback, caller)
  const wait = waitOptions(options, caller)
  if (!takeNow(demand, wait)) {
    await new Promise((resolve, reject) => {
      const acquisition = new Acquisition(demand, wait, what, resolve, reject)
      begun = acquisition
      acquisition.begin()
    })
  }
  const { token } = demand
  try {
    const result = callback(token)
    // What is no object cannot be a promise, and needs no further turn.
    return typeof result === 'object' || typeof result === 'function' ? await result : result
  } finally {
    token.unlock()
  }
}

module.exports = { acquire, acquireAsync, acquireOrThrow, block, deadlock, reacquire, requireWorker, runHolding }
