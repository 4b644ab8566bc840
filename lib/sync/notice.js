'use strict'

/** Waiting to be notified at a word: what Condition, Barrier and Latch are made of. */

const { Promise, hrtime, max } = require('../intrinsics')
const { agent } = require('../settle')
const Claimant = require('./claimant')
const { abortReason } = require('./wait-options')

/** One who awaits a notification. */
class Notice extends Claimant {
  constructor (array, signal, notified, resolve, reject) {
    super(signal, resolve, reject)
    // Kept while it is lined up: its memory.
    this.array = array
    this.notified = notified
  }

  giveUp (reason) {
    // If it is too late, it has been notified: then that is how it ends.
    if (this.leave()) this.reject(reason)
  }

  settle (outcome) {
    this.end()
    this.resolve(outcome === 'ok' && this.notified !== undefined ? this.notified() : outcome)
  }
}

/**
 * A promise of 'ok', 'not-equal' or 'timed-out', as of Atomics.waitAsync; rejected with the signal's reason.
 *
 * @param {{ array: Int32Array, address: number }} word see holdings.js
 * @param {{ linedUp: function, notified: function }} [steps] `linedUp()` is called once this thread is in the line, before
 *   anything else can run, and `notified()` as soon as it has been notified: the promise is then one of what that gives. If the
 *   thread ends before, the notification goes to another waiter
 */
function waitAsync (word, value, { timeout, signal }, steps) {
  return new Promise((resolve, reject) => {
    if (signal !== undefined && signal.aborted) {
      reject(abortReason(signal))
      return
    }
    const notice = new Notice(word.array, signal, steps && steps.notified, resolve, reject)
    const outcome = agent().waitClaim(word.address, value, timeout, notice, steps !== undefined)
    if (outcome !== undefined) {
      resolve(outcome)
      return
    }
    if (steps !== undefined) steps.linedUp()
    notice.begin()
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
  const { mayBeWaiting, notify } = agent()
  return mayBeWaiting(word.address) ? notify(word.address, count) : 0
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

module.exports = { countdown, notify, wait, waitAsync }
