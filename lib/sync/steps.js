'use strict'

const { bare } = require('../intrinsics')
const { agent } = require('../settle')

/**
 * A user's promise that stands in a line more than once before it settles: a Condition's is notified and then wants the lock again.
 * What `ref` and `unref` say of it holds for all of these steps.
 */
class Steps {
  constructor () {
    // The step that is being taken, or was the last one.
    this.claimant = undefined
    this.refed = true
    this.promise = undefined
    this.isOver = false
    // Why no further step is taken.
    this.reason = undefined
  }

  /** Remembers `promise`, which takes these steps, and gives it. */
  of (promise) {
    try {
      if (!this.isOver) agent().remember(promise, this)
    } catch (_) {
      // No stack is left. The steps are taken all the same, so whoever called gets the promise.
    }
    return promise
  }

  /** `claimant` is the next step. */
  begin (claimant) {
    this.claimant = claimant
  }

  /** The promise is about to settle. */
  end () {
    this.isOver = true
    agent().forget(this)
  }

  /** See Claimant. */
  setRefed (refed) {
    this.refed = refed
    // Between two steps the next one will be told.
    if (this.claimant !== undefined) this.claimant.setRefed(refed)
    return true
  }

  /** No further step is to be taken; the promise rejects with `reason`. */
  breakOff (reason) {
    this.reason = reason
    if (this.claimant !== undefined) this.claimant.giveUp(reason)
  }
}

bare(Steps)

module.exports = Steps
