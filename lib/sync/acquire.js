'use strict'

/** Waiting until a token's word can be had: blocking, or by a promise that can be cancelled. */

const { agent } = require('../settle')
const { threads } = require('../worker-threads')
const Claimant = require('./claimant')
const { REQUEST, SIGNALS, WORD, amountOf, kindOf } = require('./holdings')
const { unlockUnused } = require('./token')
const { abortReason, requireFunction, timeoutError, waitOptions } = require('./wait-options')

const IS_MAIN_THREAD = threads === undefined || threads.isMainThread

/**
 * Blocks until this thread has what `token` stands for. False if the time is over.
 * @throws {Error} with code ERR_DEADLOCK if this thread holds or awaits the word already and would wait for itself
 */
function acquire (token, timeout, caller) {
  return token[WORD].take(token) || block(token, timeout, caller)
}

/** `acquire` of what could not be had without waiting. */
function block (token, timeout, caller) {
  if (timeout === 0) return false
  const { claim, holdings } = agent()
  const word = token[WORD]
  const owned = kindOf(token[REQUEST]) !== SIGNALS
  if (owned && word.find() >= 0) throw deadlock(caller, 'holds it')
  // Its own promise stands before it, and could only give it up in a later turn of the event loop.
  if (owned && timeout === Infinity && word.isAwaited()) throw deadlock(caller, 'awaits it')
  holdings.makeRoom()
  const ownerDied = claim(word, kindOf(token[REQUEST]), amountOf(token[REQUEST]), timeout)
  if (ownerDied === undefined) return false
  if (owned) holdings.adoptLast(token, ownerDied)
  return true
}

/**
 * Blocks likewise; gives `token`.
 * @param {string} what the message of the TimeoutError
 */
function acquireOrThrow (token, options, caller, what) {
  const { timeout } = waitOptions(options, caller, false)
  if (!acquire(token, timeout, caller)) throw timeoutError(what, timeout)
  return token
}

/**
 * A promise of `token`, resolved once this thread has what it stands for.
 *
 * Rejects with a TimeoutError, or the signal's reason. However it gives up, nothing is lost: what comes at the same moment
 * is passed on.
 *
 * @param {string} what the message of the TimeoutError
 * @param {number} relay see `claimAsync` in lib/settle.js
 */
function acquireAsync (token, wait, what, relay = 0) {
  return new Promise((resolve, reject) => {
    if (takeNow(token, wait)) resolve(token)
    else lineUp(token, wait, what, relay, resolve, reject)
  })
}

/** Whether what `token` stands for could be had without waiting. Throws the signal's reason. */
function takeNow (token, { signal }) {
  if (signal !== undefined && signal.aborted) throw abortReason(signal)
  return token[WORD].take(token)
}

/** Waits for what could not be had without. */
function lineUp (token, { timeout, signal }, what, relay, resolve, reject) {
  if (timeout === 0) reject(timeoutError(what, timeout))
  else new Acquisition(token, timeout, signal, what, resolve, reject).begin(relay)
}

/** One who awaits a token's word. */
class Acquisition extends Claimant {
  constructor (token, timeout, signal, what, resolve, reject) {
    super(signal, resolve, reject)
    this.token = token
    this.timeout = timeout
    this.what = what
    this.owned = kindOf(token[REQUEST]) !== SIGNALS
    this.hasGivenUp = false
    this.adopted = undefined
  }

  begin (relay) {
    const { claimAsync, holdings } = agent()
    const token = this.token
    const word = token[WORD]
    const request = token[REQUEST]
    holdings.makeRoom()
    const ownerDied = claimAsync(word.address, kindOf(request), amountOf(request), this.timeout, this, relay)
    if (ownerDied !== undefined) {
      if (this.owned) holdings.adoptLast(token, ownerDied)
      this.resolve(token)
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
    return this.owned ? agent().holdings.adopt(this.token, place, ownerDied) : this.token
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      this.reject(timeoutError(this.what, this.timeout))
    } else if (!this.hasGivenUp) {
      this.resolve(this.token)
    } else if (this.owned) {
      unlockUnused(this.token)
    } else {
      this.token[WORD].addPermits(amountOf(this.token[REQUEST]))
    }
  }

  end () {
    this.token[WORD].claimEnds()
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
  error.code = 'ERR_DEADLOCK'
  return error
}

/**
 * Runs `callback(token)` with what `token` stands for, before this returns if that needs no waiting, and gives it back,
 * whatever comes of it.
 */
async function runHolding (token, callback, options, caller, what) {
  requireFunction(callback, caller)
  const wait = waitOptions(options, caller)
  if (!takeNow(token, wait)) await new Promise((resolve, reject) => lineUp(token, wait, what, 0, resolve, reject))
  try {
    const result = callback(token)
    // What is no object cannot be a promise, and needs no further turn.
    return typeof result === 'object' || typeof result === 'function' ? await result : result
  } finally {
    token.unlock()
  }
}

module.exports = { acquire, acquireAsync, acquireOrThrow, block, deadlock, requireWorker, runHolding }
