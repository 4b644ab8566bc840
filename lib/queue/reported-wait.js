'use strict'

/**
 * A wait for a queue, as diagnostics and stall reports have it. It begins when there is nothing to put or to
 * take for the first time, and ends with the call. A taker's wait may be a pause: there may be nothing to do for as
 * long as the program likes.
 */

const { bare } = require('../util/intrinsics')
const observer = require('../waiting/observer')
const { NOTIFICATION, requestOf } = require('../holding/request')
const { PUT } = require('./memory')

class ReportedWait {
  /** @param {Steps} [steps] of the promise that waits; otherwise this thread blocks */
  constructor (word, mode, steps) {
    this.word = word
    this.request = requestOf(NOTIFICATION, mode)
    this.steps = steps
    this.since = observer.waits(steps === undefined ? undefined : steps.context)
    const mayBePause = mode !== PUT
    this.onSlice = steps === undefined ? observer.whileBlocked(mayBePause) : undefined
    this.wait = steps === undefined ? undefined : observer.waitBegins(this, steps.call, mayBePause)
  }

  get slot () {
    return this.steps.waiter.slot
  }

  /**
   * Notes the end. The caller opens the door.
   * @param {'acquired' | 'ended' | 'timed-out' | 'aborted'} outcome
   */
  ends (outcome) {
    if (this.wait !== undefined) observer.waitEnds(this.wait)
    if (this.since !== undefined) observer.waited(this.since, this, outcome)
  }
}
bare(ReportedWait)

module.exports = ReportedWait
