'use strict'

/** Waiting until a token's word can be had: blocking, or by a promise that can be cancelled. */

const { agent } = require('../settle')
const { threads } = require('../worker-threads')
const Claimant = require('./claimant')
const createError = require('./error')
const { EXCLUSIVE, LOCK, REQUEST, SHARED, SIGNALS, WORD, amountOf, kindOf } = require('./holdings')
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
 * A promise that is resolved once this thread has what `token` stands for: with the token, unless that is nobody's.
 *
 * Rejects with a TimeoutError, or the signal's reason. However it gives up, nothing is lost: what comes at the same moment
 * is passed on.
 *
 * @param {string} what the message of the TimeoutError
 */
function acquireAsync (token, options, caller, what) {
  let resolve
  let reject
  const promise = new Promise((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // The constructor makes a stack overflow in its executor a rejection.
  if (reject === undefined) return promise
  try {
    const wait = waitOptions(options, caller)
    const value = kindOf(token[REQUEST]) === SIGNALS ? undefined : token
    if (takeNow(token, wait)) {
      resolve(value)
    } else {
      const acquisition = new Acquisition(token, wait, what, () => resolve(value), reject)
      agent().remember(promise, acquisition)
      acquisition.begin()
    }
  } catch (error) {
    reject(error)
  }
  return promise
}

const NO_LIMIT = { timeout: Infinity, signal: undefined }

/** Takes again what `token` stands for, as a step of a promise. The last two are those of an Acquisition. */
function reacquire (token, resolve, reject, steps, notifiedAt) {
  if (token[WORD].take(token)) resolve()
  else new Acquisition(token, NO_LIMIT, '', resolve, reject, steps, notifiedAt).begin()
}

/** Whether what `token` stands for could be had without waiting. Throws the signal's reason. */
function takeNow (token, { signal }) {
  if (signal !== undefined && signal.aborted) throw abortReason(signal)
  return token[WORD].take(token)
}

/** One who awaits a token's word. */
class Acquisition extends Claimant {
  /**
   * @param {Steps} [steps] what this is a step of
   * @param {object} [notifiedAt] the word at which this thread has been notified, if that is why it wants the token's: the notification
   *   goes to another waiter unless this thread comes to have that
   */
  constructor (token, { timeout, signal }, what, resolve, reject, steps, notifiedAt) {
    super(token[WORD], signal, steps, resolve, reject)
    this.token = token
    this.timeout = timeout
    this.what = what
    this.notifiedAt = notifiedAt
    this.owned = kindOf(token[REQUEST]) !== SIGNALS
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
    const { token, word, notifiedAt } = this
    const request = token[REQUEST]
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
    if (this.owned) holdings.adoptLast(token, ownerDied)
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
    return this.owned ? agent().holdings.adopt(this.token, place, ownerDied) : this.token
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      this.reject(timeoutError(this.what, this.timeout))
    } else if (!this.hasGivenUp) {
      this.resolve()
    } else {
      if (this.owned) unlockUnused(this.token)
      else this.word.addPermits(amountOf(this.token[REQUEST]))
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
    switch (kindOf(this.token[REQUEST])) {
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
 * Runs `callback(token)` with what `token` stands for, before this returns if that needs no waiting, and gives it back,
 * whatever comes of it.
 */
function runHolding (token, callback, options, caller, what) {
  const promise = run(token, callback, options, caller, what)
  if (begun !== undefined) rememberBegun(promise, token)
  return promise
}

function rememberBegun (promise, token) {
  try {
    // It is another's if that was broken off, as a time limit of `vm` does.
    if (begun.token === token && begun.slot >= 0) agent().remember(promise, begun)
  } catch (_) {
    // No stack is left. The callback will run all the same, so whoever called gets the promise.
  }
  begun = undefined
}

async function run (token, callback, options, caller, what) {
  requireFunction(callback, caller)
  const wait = waitOptions(options, caller)
  if (!takeNow(token, wait)) {
    await new Promise((resolve, reject) => {
      const acquisition = new Acquisition(token, wait, what, resolve, reject)
      begun = acquisition
      acquisition.begin()
    })
  }
  try {
    const result = callback(token)
    // What is no object cannot be a promise, and needs no further turn.
    return typeof result === 'object' || typeof result === 'function' ? await result : result
  } finally {
    token.unlock()
  }
}

/** A promise that is rejected, whatever has been done to the global one. */
async function rejected (error) {
  throw error
}

module.exports = { acquire, acquireAsync, acquireOrThrow, block, deadlock, reacquire, rejected, requireWorker, runHolding }
