'use strict'

/**
 * A user's promise that is enqueued repeatedly before it settles. A Condition's promise is notified, and then claims
 * the lock again. `ref` and `unref` of the promise apply to each of these steps.
 */

const { agent } = require('../agent/find-agent')
const { bare } = require('../util/intrinsics')
const observer = require('./observer')

class Steps {
  constructor () {
    // The waiter of the current or the last step.
    this.waiter = undefined
    this.refed = true
    this.promise = undefined
    // From the first step until the promise is about to settle.
    this.isPending = false
    // Why no further step is taken.
    this.reason = undefined
    // Set by profile.js, if waits are recorded.
    this.sample = undefined
    // Where the promise came from, if a stall is to be reported; and its asynchronous context, if the channels of
    // diagnostics have subscribers. Noted here, since native code may begin a step outside of the call.
    this.call = observer.callOf()
    this.context = observer.contextOfWait()
  }

  /** Makes the agent remember `promise`, which takes these steps, and returns it. */
  of (promise) {
    if (this.isPending) agent().rememberSteps(promise, this)
    return promise
  }

  begin (waiter) {
    this.waiter = waiter
    this.isPending = true
  }

  /** Ends the steps: the promise is about to settle. */
  end () {
    this.isPending = false
    agent().forgetSteps(this)
  }

  setRefed (refed) {
    this.refed = refed
    // Between two steps it applies to the next one.
    if (this.waiter !== undefined) this.waiter.setRefed(refed)
    return true
  }

  /** Stops the steps: the promise rejects with `reason`. */
  reject (reason) {
    this.reason = reason
    if (this.waiter !== undefined) this.waiter.giveUp(reason)
  }
}

bare(Steps)

module.exports = Steps
