'use strict'

const { bare } = require('../intrinsics')
const { agent } = require('../settle')
const { abortReason } = require('./wait-options')

/**
 * One who stands in a line for a promise, and leaves it when a signal says so: what a Notice and an Acquisition have in
 * common. A claimant of lib/settle.js, which tells it by `settle(value)`.
 */
class Claimant {
  constructor (signal, resolve, reject) {
    this.signal = signal
    this.resolve = resolve
    this.reject = reject
    this.onAbort = () => this.giveUp(abortReason(this.signal))
    // Whose slot it is when this one has ended is no business of this one's.
    this.slot = -1
  }

  /** It stands in the line now, and hears the signal until `end()`. */
  begin () {
    if (this.signal === undefined) return
    try {
      this.signal.addEventListener('abort', this.onAbort, { once: true })
    } catch (error) {
      this.giveUp(error)
    }
  }

  /** Leaves the line. False if it is too late for that: then it will be told how it ended. */
  leave () {
    if (this.slot < 0 || !agent().cancel(this)) return false
    this.end()
    return true
  }

  end () {
    this.slot = -1
    if (this.signal === undefined || typeof this.signal.removeEventListener !== 'function') return
    try {
      this.signal.removeEventListener('abort', this.onAbort)
    } catch (_) {
      // A signal that fails here must not keep the rest of a batch from being settled.
    }
  }
}
bare(Claimant)

module.exports = Claimant
