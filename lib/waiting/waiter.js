'use strict'

/**
 * A promise that is enqueued until it settles or is aborted. It is the base of Claim and Notice. agent/slots.js passes
 * it the result by `settle(value)`.
 *
 * Each kind has:
 * - `prepare()`: does what may run a program's code before it is enqueued
 * - `enqueue()`: enqueues it, and runs no such code. Returns undefined, or the result if there is one at once
 * - `finish(result)`: settles the promise with such a result
 * - `resolve(value)` and `reject(reason)`, as methods or fields: settle the promise
 * - `giveUp(reason)`: dequeues it and rejects or, if it is too late for that, deals with the result when it comes
 * - `waitsFor`: a noun phrase for warnings
 */

const { agent } = require('../agent/find-agent')
const { bare, createMap, shield } = require('../util/intrinsics')
const abortSignals = require('./abort-signals')
const { abortReason } = require('./errors')
const observer = require('./observer')

/** The keys of the words for which a warning has been given. */
const warned = createMap()

class Waiter {
  /**
   * @param {object} word kept while this is enqueued
   * @param {Steps} [steps] the user's promise, of which this is a step
   */
  constructor (word, signal, steps) {
    this.word = word
    this.signal = signal
    if (steps !== undefined) this.steps = steps
    // Slots are reused: -1 keeps a late abort from cancelling the next occupant.
    this.slot = -1
    this.refed = steps === undefined || steps.refed
  }

  /**
   * Enqueues it, or settles the promise at once. It joins its signal first: if the signal's code throws, it must not be
   * enqueued; nor if code of the program's aborts it before that. The caller has made sure that there is stack.
   */
  begin () {
    let result
    try {
      if (this.steps !== undefined) this.steps.begin(this)
      abortSignals.join(this)
      const recorded = observer.promiseBegins(this)
      if (recorded !== undefined) this.recorded = recorded
      this.prepare()
      if (!abortSignals.hears(this)) {
        this.end()
        return
      }
      result = this.enqueue()
    } catch (error) {
      this.end()
      throw error
    }
    if (result === undefined) {
      if (!this.refed) this.setRefed(false)
      if (this.onEnqueued !== undefined) this.onEnqueued()
      return
    }
    this.end()
    this.finish(result)
  }

  prepare () {}

  /** The number of the call that waits, if stalls are reported: see places.js; otherwise 0. */
  get call () {
    const { steps } = this
    return steps === undefined || steps.call === undefined ? 0 : steps.call.place
  }

  abort () {
    this.giveUp(abortReason(this.signal))
  }

  /** Dequeues it. False if that is too late: then it will be settled. */
  dequeue () {
    if (this.slot < 0 || !agent().cancel(this)) return false
    this.end()
    return true
  }

  /** Ends it: it is no longer enqueued, or never was. */
  end () {
    this.slot = -1
    if (this.recorded !== undefined) {
      observer.recordEnds(this.recorded)
      this.recorded = undefined
    }
    abortSignals.leave(this)
  }

  /** Sets whether the wait holds the event loop. False if it is not enqueued. */
  setRefed (refed) {
    if (this.slot < 0) return false
    this.refed = refed
    agent().setSlotRefed(this.slot, refed)
    return true
  }

  /** The data for the warning of a loop that runs dry. Undefined if its word has been warned of before. */
  get pendingNote () {
    const { key } = this.word
    if (warned.has(key)) return undefined
    warned.set(key, true)
    return { waitsFor: this.waitsFor, isHolder: this.word.find() >= 0 }
  }
}
bare(Waiter)
// A waiter without these takes no memory for them. `onEnqueued` is called once it is enqueued, before anything else can
// run. `recorded`: the number of the wait in profile.js, if it is recorded.
shield(Waiter, ['steps', 'onEnqueued', 'recorded'])

module.exports = Waiter
