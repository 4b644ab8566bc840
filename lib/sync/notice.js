'use strict'

/** Waiting to be notified at a word: what Condition, Barrier and Latch are made of. */

const { agent } = require('../settle')
const { abortReason } = require('./wait-options')

/** One who awaits a notification; a claimant of lib/settle.js. */
class Notice {
  constructor (array, signal, resolve, reject) {
    // Kept while it is lined up: its memory.
    this.array = array
    this.signal = signal
    this.resolve = resolve
    this.reject = reject
    this.onAbort = () => this.abort()
    this.slot = -1
  }

  listen () {
    if (this.signal !== undefined) this.signal.addEventListener('abort', this.onAbort, { once: true })
  }

  abort () {
    // If it is too late, it has been notified: then that is how it ends.
    if (!agent().cancel(this)) return
    this.end()
    this.reject(abortReason(this.signal))
  }

  settle (outcome) {
    this.end()
    this.resolve(outcome)
  }

  end () {
    if (this.signal !== undefined && typeof this.signal.removeEventListener === 'function') {
      this.signal.removeEventListener('abort', this.onAbort)
    }
  }
}

/**
 * A promise of 'ok', 'not-equal' or 'timed-out', as of Atomics.waitAsync; rejected with the signal's reason. `linedUp` is
 * called once this thread is in the line, before anything else can run.
 *
 * @param {{ array: Int32Array, address: number }} word see holdings.js
 */
function waitAsync (word, value, { timeout, signal }, linedUp) {
  return new Promise((resolve, reject) => {
    if (signal !== undefined && signal.aborted) {
      reject(abortReason(signal))
      return
    }
    const notice = new Notice(word.array, signal, resolve, reject)
    const outcome = agent().waitClaim(word.address, value, timeout, notice)
    if (outcome !== undefined) {
      resolve(outcome)
      return
    }
    if (linedUp !== undefined) linedUp()
    notice.listen()
  })
}

/** Blocks; gives as Atomics.wait does. */
function wait (word, value, timeout) {
  return agent().wait(word.address, false, value, timeout)
}

/** Wakes up to `count`. How many. */
function notify (word, count) {
  return agent().notify(word.address, count)
}

/** A function that gives the milliseconds left of a time-out that begins now. */
function countdown (timeout) {
  if (timeout === Infinity) return () => Infinity
  const start = process.hrtime()
  return () => {
    const [seconds, nanoseconds] = process.hrtime(start)
    return Math.max(0, timeout - seconds * 1e3 - nanoseconds / 1e6)
  }
}

module.exports = { countdown, notify, wait, waitAsync }
