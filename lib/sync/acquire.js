'use strict'

/** Waiting until what is demanded can be had: blocking, or by a promise that can be cancelled. See `Demand` in token.js. */

const { Error, Promise, TypeError, define } = require('../intrinsics')
const { agent } = require('../settle')
const { threads } = require('../worker-threads')
const Claimant = require('./claimant')
const { SIGNALS, amountOf, kindOf } = require('./holdings')
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
 * A promise of the token, resolved once this thread has what is demanded.
 *
 * Rejects with a TimeoutError, or the signal's reason. However it gives up, nothing is lost: what comes at the same moment
 * is passed on.
 *
 * @param {string} what the message of the TimeoutError
 * @param {number} relay see `claimAsync` in lib/settle.js
 */
function acquireAsync (demand, wait, what, relay = 0) {
  return new Promise((resolve, reject) => {
    if (takeNow(demand, wait)) resolve(demand.token)
    else lineUp(demand, wait, what, relay, resolve, reject)
  })
}

/** Whether what is demanded could be had without waiting. Throws the signal's reason. */
function takeNow (demand, { signal }) {
  if (signal !== undefined && signal.aborted) throw abortReason(signal)
  return theHoldings().take(demand)
}

/** Waits for what could not be had without. */
function lineUp (demand, { timeout, signal }, what, relay, resolve, reject) {
  if (timeout === 0) reject(timeoutError(what, timeout))
  else new Acquisition(demand, timeout, signal, what, resolve, reject).begin(relay)
}

/** One who awaits what is demanded. */
class Acquisition extends Claimant {
  constructor (demand, timeout, signal, what, resolve, reject) {
    super(signal, resolve, reject)
    this.demand = demand
    this.timeout = timeout
    this.what = what
    this.owned = kindOf(demand.request) !== SIGNALS
    this.hasGivenUp = false
    this.adopted = undefined
  }

  begin (relay) {
    const { claimAsync, holdings } = agent()
    const { demand } = this
    const { word, request } = demand
    holdings.makeRoom()
    const ownerDied = claimAsync(word.address, kindOf(request), amountOf(request), this.timeout, this, relay)
    if (ownerDied !== undefined) {
      if (this.owned) holdings.adoptLast(demand, ownerDied)
      this.resolve(demand.token)
      return
    }
    word.claimBegins()
    super.begin()
  }

  giveUp (reason) {
    if (this.hasGivenUp) return
    this.hasGivenUp = true
    // If it is too late, what was asked for is on its way here and is given back when it comes.
    this.leave()
    this.reject(reason)
  }

  adopt (place, ownerDied) {
    return this.owned ? agent().holdings.adopt(this.demand, place, ownerDied) : this.demand.token
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      this.reject(timeoutError(this.what, this.timeout))
    } else if (!this.hasGivenUp) {
      this.resolve(this.demand.token)
    } else if (this.owned) {
      giveBackUnused(this.demand)
    } else {
      this.demand.word.addPermits(amountOf(this.demand.request))
    }
  }

  end () {
    this.demand.word.claimEnds()
    super.end()
  }
}

/** @throws {TypeError} on the main thread, which must not block, naming what to use instead */
function requireWorker (what, instead) {
  if (IS_MAIN_THREAD) throw new TypeError(what + ' would block the main thread: use ' + instead)
}

/** What a thread gets that would wait for itself; `does` is 'holds it' or 'awaits it'. */
function deadlock (caller, does) {
  const error = new Error(caller + ': this thread ' + does + ' already and would wait for itself')
  define(error, 'code', 'ERR_DEADLOCK', true, true)
  return error
}

/**
 * Runs `callback(token)` with what is demanded, before this returns if that needs no waiting, and gives it back,
 * whatever comes of it.
 */
async function runHolding (demand, callback, options, caller, what) {
  requireFunction(callback, caller)
  const wait = waitOptions(options, caller)
  if (!takeNow(demand, wait)) await new Promise((resolve, reject) => lineUp(demand, wait, what, 0, resolve, reject))
  const { token } = demand
  try {
    const result = callback(token)
    // What is no object cannot be a promise, and needs no further turn.
    return typeof result === 'object' || typeof result === 'function' ? await result : result
  } finally {
    token.unlock()
  }
}

module.exports = { acquire, acquireAsync, acquireOrThrow, block, deadlock, requireWorker, runHolding }
