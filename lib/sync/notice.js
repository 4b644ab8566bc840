'use strict'

/** Waiting to be notified at a word: what Condition, Barrier and Latch are made of. */

const { Promise, hrtime, max } = require('../intrinsics')
const { agent } = require('../settle')
const Claimant = require('./claimant')
const requireStack = require('./require-stack')
const { abortReason } = require('./wait-options')

/** One who awaits a notification. */
class Notice extends Claimant {
  constructor (word, signal, steps, { waitsFor, giveUpLock, notified }, resolve, reject) {
    super(word, signal, steps, resolve, reject)
    this.waitsFor = waitsFor
    this.giveUpLock = giveUpLock
    this.notified = notified
  }

  begin (value, timeout) {
    let outcome
    try {
      if (!super.begin()) return
      outcome = agent().waitClaim(this.word.address, value, timeout, this, this.notified !== undefined)
    } catch (error) {
      this.end()
      throw error
    }
    if (outcome === undefined) {
      this.linedUp()
      if (this.giveUpLock !== undefined) this.giveUpLock()
      return
    }
    this.end()
    this.resolve(outcome)
  }

  giveUp (reason) {
    // If it is too late, it has been notified: then that is how it ends.
    if (this.slot < 0 || this.leave()) this.reject(reason)
  }

  settle (outcome) {
    this.end()
    if (outcome !== 'ok' || this.notified === undefined) this.resolve(outcome)
    else this.notified(this.resolve, this.reject)
  }
}

/**
 * A promise of 'ok', 'not-equal' or 'timed-out', as of Atomics.waitAsync; rejected with the signal's reason.
 *
 * @param {{ array: Int32Array, address: number }} word see holdings.js
 * @param {Steps} steps what this is a step of
 * @param {{ waitsFor: string, giveUpLock?: function, notified?: function }} what `waitsFor` is what a warning says. `giveUpLock()` is
 *   called once this thread is in the line, before anything else can run, and `notified(resolve, reject)` as soon as it has been notified: that
 *   then settles the promise. If the thread ends before, the notification goes to another waiter
 */
function waitAsync (word, value, { timeout, signal }, steps, what) {
  return new Promise((resolve, reject) => {
    if (signal !== undefined && signal.aborted) {
      reject(abortReason(signal))
      return
    }
    new Notice(word, signal, steps, what, resolve, reject).begin(value, timeout)
  })
}

/** Blocks; gives as Atomics.wait does. */
function wait (word, value, timeout) {
  return agent().wait(word.address, false, value, timeout)
}

/**
 * Wakes up to `count`. How many.
 *
 * A plain look at the counter is enough: Barrier and Latch change their word by an atomic operation before. Whom a Condition
 * is to notify was counted before it freed the lock; and who has not taken the lock since then has not changed what that one
 * waits for either.
 */
function notify (word, count) {
  return agent().notifyWaiting(word.address, count)
}

/**
 * To be called before a change that must be followed by a `notify`. Near the end of the stack it throws; where it does not, `notify` will
 * not throw either.
 */
function rehearseNotify (word) {
  requireStack()
  notify(word, 0)
}

/** A function that gives the milliseconds left of a time-out that begins now. */
function countdown (timeout) {
  if (timeout === Infinity) return () => Infinity
  const start = hrtime()
  return () => {
    // Not by destructuring, which asks the prototype of arrays for an iterator.
    const past = hrtime(start)
    return max(0, timeout - past[0] * 1e3 - past[1] / 1e6)
  }
}

module.exports = { countdown, notify, rehearseNotify, wait, waitAsync }
