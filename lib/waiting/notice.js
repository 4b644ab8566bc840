'use strict'

/** Waits for a notification at a word: the basis of Condition, Barrier and Latch. */

const { agent } = require('../agent/agent')
const { CALL } = require('../agent/registers')
const { Promise, load, max, now, shield } = require('../util/intrinsics')
const { hideFrames, throwIfAborted, timeoutError } = require('./errors')
const { NOTIFIED, WAIT_KINDS, nounOf } = require('./kinds')
const observer = require('./observer')
const Waiter = require('./waiter')

/** The bytes of a word. */
const BYTES = 4

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
    const { steps } = this
    const stall = steps === undefined ? undefined : observer.waitBegins(this, steps.call, true)
    if (stall === undefined) return
    this.stall = stall
    this.since = observer.waits(steps.context)
  }

  end () {
    super.end()
    if (this.stall === undefined) return
    observer.waitEnds(this.stall)
    this.stall = undefined
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
// If stalls are reported: the wait, and since when, as stalls.js has them.
shield(Notice, ['stall', 'since'])

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

/** Blocks until `isOver(value of the word)`. Throws a TimeoutError. `onSlice()` is called while it sleeps. */
function waitUntil (word, isOver, timeout, waitKind, onSlice) {
  const left = countdown(timeout)
  let result
  for (;;) {
    const value = load(word.array, 0)
    if (isOver(value)) return
    if (result === 'timed-out') throw lateError(word, timeout, waitKind)
    result = blockFor(word.address, value, left(), waitKind, onSlice)
  }
}

/** Blocks for a notification at a word, and records the wait. The result is that of the agent's `waitFor`. */
function blockFor (address, value, timeout, waitKind, onSlice, place = observer.callHere()) {
  const { native, waitFor } = agent()
  native.words[CALL] = place
  const onSliceToo = observer.blockBegins(nounOfWait, { address, waitKind }, onSlice)
  try {
    return waitFor(address, value, timeout, waitKind, onSliceToo)
  } finally {
    observer.blockEnds(onSliceToo)
  }
}

/** Names an awaited object by a word's address and the wait kind. */
function nounOfWait ({ address, waitKind }) {
  const name = agent().native.binding.labelOf(address - BYTES * ((waitKind - waitKind % WAIT_KINDS) / WAIT_KINDS))
  const { kind, mode } = NOTIFIED[waitKind % WAIT_KINDS]
  return nounOf({ kind, mode, name: name === null ? undefined : name })
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

module.exports = {
  NO_HOOKS, Notice, blockFor, countdown, notify, nounOfWait, waitAsync, waitUntil,
  waitUntilAsync
}
