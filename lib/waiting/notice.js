'use strict'

/** Promises that wait for a notification at a word. */

const { agent } = require('../agent/find-agent')
const { Promise } = require('../util/intrinsics')
const { throwIfAborted } = require('./errors')
const { NOTIFIED, nounOf } = require('./kinds')
const Waiter = require('./waiter')

/** No hooks, and no inherited ones, which could be a program's. */
const NO_HOOKS = { __proto__: null }

/** A promise that waits for a notification. */
class Notice extends Waiter {
  constructor (word, value, { timeout, signal }, steps, waitKind, hooks, resolve, reject) {
    const { onEnqueuing, onEnqueued, onNotified } = hooks
    super(word, signal, steps)
    this.resolve = resolve
    this.reject = reject
    this.value = value
    this.timeout = timeout
    this.waitKind = waitKind
    // Whether it waits on an element of a BigInt64Array.
    this.wide = false
    this.onEnqueuing = onEnqueuing
    this.onEnqueued = onEnqueued
    this.onNotified = onNotified
  }

  prepare () {
    if (this.onEnqueuing !== undefined) this.onEnqueuing()
  }

  enqueue () {
    return agent().waitClaim(this.word.address, this.wide, this.value, this.timeout, this)
  }

  finish (result) {
    this.resolve(result)
  }

  giveUp (reason) {
    // If it is too late, it has been settled, and ends by that.
    if (this.slot < 0 || this.dequeue()) this.reject(reason)
  }

  settle (result) {
    this.end()
    if (result !== 'ok' || this.onNotified === undefined) this.resolve(result)
    else this.onNotified(this.resolve, this.reject)
  }

  get waitsFor () {
    return nounOf({ kind: NOTIFIED[this.waitKind].kind, name: this.word.name })
  }
}

/**
 * Waits for a notification, as Atomics.waitAsync: 'ok', 'not-equal' or 'timed-out'. The promise rejects
 * with the signal's reason.
 *
 * @param {Steps} steps the user's promise, of which this is a step
 * @param {{ onEnqueuing: function, onEnqueued: function, onNotified: function }} [hooks] `onEnqueuing()` is called
 *   before this thread is enqueued, after the last code of the signal's; `onEnqueued()` once it is, before anything
 *   else can run; `onNotified(resolve, reject)` as soon as it has been notified, and settles the promise. If the thread
 *   ends before, the notification goes to another waiter
 */
function waitAsync (word, value, options, steps, waitKind, hooks = NO_HOOKS) {
  return new Promise((resolve, reject) => {
    throwIfAborted(options.signal)
    new Notice(word, value, options, steps, waitKind, hooks, resolve, reject).begin()
  })
}

module.exports = { NO_HOOKS, Notice, waitAsync }
