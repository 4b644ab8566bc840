'use strict'

const { bare } = require('../intrinsics')
const { agent } = require('../settle')
const audience = require('./audience')
const { abortReason } = require('./wait-options')

/**
 * One who stands in a line for a promise, and leaves it when a signal says so: what a Notice and an Acquisition have in
 * common. A claimant of lib/settle.js, which tells it by `settle(value)`.
 *
 * Each kind has `giveUp(reason)`: leaves the line, or, if it is too late for that, sees to what comes.
 */
class Claimant {
  /**
   * @param {object} word what it waits for (see holdings.js); it is kept as long as this one stands in the line
   * @param {Steps} [steps] what this is a step of
   */
  constructor (word, signal, steps, resolve, reject) {
    this.word = word
    this.signal = signal
    this.steps = steps
    this.resolve = resolve
    this.reject = reject
    // Whose slot it is when this one has ended is no business of this one's.
    this.slot = -1
    this.refed = steps === undefined || steps.refed
    // Whose `ref` and `unref` are this one's.
    this.promise = undefined
    // Of audience.js.
    this.audience = this.previous = this.next = undefined
  }

  /**
   * To be called before it is lined up, since near the end of the stack what comes afterwards might fail, and then nobody would know that
   * it stands in the line. Hears the signal from now on, until `end()`. False if it has been told to give up meanwhile.
   */
  begin () {
    if (this.steps !== undefined) this.steps.begin(this)
    if (this.signal === undefined) return true
    audience.join(this)
    return this.audience !== undefined
  }

  abort () {
    let reason
    try {
      reason = abortReason(this.signal)
    } catch (error) {
      reason = error
    }
    this.giveUp(reason)
  }

  /** Leaves the line. False if it is too late for that: then it will be told how it ended. */
  leave () {
    if (this.slot < 0 || !agent().cancel(this)) return false
    this.end()
    return true
  }

  end () {
    this.slot = -1
    agent().forget(this)
    audience.leave(this)
  }

  /** Sets whether it keeps the event loop alive. False if it stands in no line (any more). */
  setRefed (refed) {
    if (this.slot < 0) return false
    this.refed = refed
    agent().setSlotRefed(this.slot, refed)
    return true
  }

  /** To be called when it stands in the line. */
  linedUp () {
    if (!this.refed) this.setRefed(false)
  }
}
bare(Claimant)

module.exports = Claimant
