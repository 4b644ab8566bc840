'use strict'

/** Waits for notifications, or until a word says so: blocking, or by a promise. */

const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { Promise, load, max, now } = require('../util/intrinsics')
const { NOTIFIED, hideFrames, nounOf, throwIfAborted, timeoutError } = require('./errors')
const observer = require('./observer')
const { Waiter } = require('./waiter')

/** No hooks, and no inherited ones, which could be a program's. */
const NO_HOOKS = { __proto__: null }

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

// ——— Until a word says so: the basis of Barrier and Latch ———

/** Blocks until `isOver(value of the word)`. Throws a TimeoutError. */
function waitUntil (word, isOver, timeout, waitKind) {
  const left = countdown(timeout)
  let result
  for (;;) {
    const value = load(word.array, 0)
    if (isOver(value)) return
    if (result === 'timed-out') throw lateError(word, timeout, waitKind)
    result = blockFor(word.address, value, left(), waitKind)
  }
}

/** Blocks for a notification at a word, and records the wait. The result is that of the agent's `waitFor`. */
function blockFor (address, value, timeout, waitKind, place = observer.callHere(), sample = observer.sample()) {
  const { native, waitFor } = agent()
  const recorded = observer.recordBegins(sample, { address, waitKind })
  native.words[CALL] = place
  try {
    return waitFor(address, value, timeout, waitKind)
  } finally {
    if (recorded !== undefined) observer.recordEnds(recorded)
  }
}

/**
 * Waits until `isOver(value of the word)`, as `waitUntil`, by a promise.
 * @param {Steps} steps of the user's promise, which settles soon after this
 * @param {Function} caller the async function that awaits this: the error's stack begins behind it
 */
async function waitUntilAsync (word, isOver, { timeout, signal }, steps, waitKind, caller) {
  const left = countdown(timeout)
  let result
  try {
    for (;;) {
      if (steps.reason !== undefined) throw steps.reason
      const value = load(word.array, 0)
      if (isOver(value)) return
      if (result === 'timed-out') throw hideFrames(lateError(word, timeout, waitKind), caller)
      result = await waitAsync(word, value, { timeout: left(), signal }, steps, waitKind)
    }
  } finally {
    steps.end()
  }
}

const lateError = (word, timeout, waitKind) => timeoutError(word, NOTIFIED[waitKind], timeout)

/**
 * Wakes up to `count` waiters, and returns how many.
 *
 * A plain look at the counter is enough: Barrier and Latch have changed their word by an atomic operation before. A
 * waiter of a Condition was counted before it released the lock; and a thread that has not taken the lock since has not
 * changed the state that this waiter waits for.
 */
function notify (word, count) {
  return agent().notifyWaiting(word.address, count)
}

/** Starts a timeout. Returns a function that returns the milliseconds left. */
function countdown (timeout) {
  if (timeout === Infinity) return () => Infinity
  const end = now() + timeout
  return () => max(0, end - now())
}

module.exports = { NO_HOOKS, Notice, blockFor, countdown, notify, waitAsync, waitUntil, waitUntilAsync }
