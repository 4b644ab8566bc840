'use strict'

/** Waits for a notification at a word: the basis of Condition, Barrier and Latch. */

const { agent } = require('../agent/agent')
const { Promise, load, max, now } = require('../util/intrinsics')
const { hideFrames, throwIfAborted, timeoutError } = require('./errors')
const { NOTIFIED, PURPOSES, nounOf } = require('./kinds')
const { alongside, blockBegins, blockEnds } = require('./profile')
const Waiter = require('./waiter')

// What a notification is awaited for: the indexes of `NOTIFIED`.
const WAIT = 0
const CONDITION = 1
const BARRIER = 2
const LATCH = 3

/** Of a word. */
const BYTES = 4

/** Without inherited ones, which could be a program's. */
const NO_HOOKS = { __proto__: null }

/** A promise that waits for a notification. */
class Notice extends Waiter {
  constructor (word, value, { timeout, signal }, steps, purpose, { onEnqueuing, onEnqueued, onNotified }, resolve, reject) {
    super(word, signal, steps)
    this.resolve = resolve
    this.reject = reject
    this.value = value
    this.timeout = timeout
    this.purpose = purpose
    // Whether it waits on an element of a BigInt64Array.
    this.wide = false
    this.onEnqueuing = onEnqueuing
    this.onEnqueued = onEnqueued
    this.onNotified = onNotified
  }

  enqueue () {
    if (this.onEnqueuing !== undefined) this.onEnqueuing()
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
    return nounOf({ kind: NOTIFIED[this.purpose].kind, name: this.word.name })
  }
}

/**
 * A promise of 'ok', 'not-equal' or 'timed-out', as of Atomics.waitAsync; it rejects with the signal's reason.
 *
 * @param {Steps} steps what this is a step of
 * @param {{ onEnqueuing: function, onEnqueued: function, onNotified: function }} [hooks] `onEnqueuing()` is called before this thread is
 *   enqueued, after the last code of the signal's; `onEnqueued()` once it is, before anything else can run; `onNotified(resolve, reject)` as
 *   soon as it has been notified, and settles the promise. If the thread ends before, the notification goes to another waiter
 */
function waitAsync (word, value, options, steps, purpose, hooks = NO_HOOKS) {
  return new Promise((resolve, reject) => {
    throwIfAborted(options.signal)
    new Notice(word, value, options, steps, purpose, hooks, resolve, reject).begin()
  })
}

/** Blocks until `isOver(value of the word)`. Throws a TimeoutError. */
function waitUntil (word, isOver, timeout, purpose) {
  const left = countdown(timeout)
  let result
  for (;;) {
    const value = load(word.array, 0)
    if (isOver(value)) return
    if (result === 'timed-out') throw lateError(word, timeout, purpose)
    result = blockFor(word.address, value, left(), purpose)
  }
}

/** Blocks for a notification at a word, and records that. The result is that of the agent's `waitFor`. */
function blockFor (address, value, timeout, purpose, onSlice) {
  const { native, waitFor } = agent()
  if (!native.profiles) return waitFor(address, value, timeout, purpose, onSlice)
  blockBegins(nounOfWait, { address, purpose })
  try {
    return waitFor(address, value, timeout, purpose, alongside(onSlice))
  } finally {
    blockEnds()
  }
}

/** A noun phrase for a thing, by the address of one of its words and the purpose of a wait there. */
function nounOfWait ({ address, purpose }) {
  const name = agent().native.binding.labelOf(address - BYTES * ((purpose - purpose % PURPOSES) / PURPOSES))
  const { kind, mode } = NOTIFIED[purpose % PURPOSES]
  return nounOf({ kind, mode, name: name === null ? undefined : name })
}

/**
 * As `waitUntil`, by a promise.
 * @param {Steps} steps of the user's promise, which settles soon after this
 * @param {Function} caller the async function that awaits this: the error's stack begins behind it
 */
async function waitUntilAsync (word, isOver, { timeout, signal }, steps, purpose, caller) {
  const left = countdown(timeout)
  let result
  try {
    for (;;) {
      if (steps.reason !== undefined) throw steps.reason
      const value = load(word.array, 0)
      if (isOver(value)) return
      if (result === 'timed-out') throw hideFrames(lateError(word, timeout, purpose), caller)
      result = await waitAsync(word, value, { timeout: left(), signal }, steps, purpose)
    }
  } finally {
    steps.end()
  }
}

const lateError = (word, timeout, purpose) => timeoutError(word, NOTIFIED[purpose], timeout)

/**
 * Wakes up to `count` waiters, and returns how many.
 *
 * A plain look at the counter is enough: Barrier and Latch have changed their word by an atomic operation before. A waiter of a
 * Condition was counted before it released the lock; a thread that has not taken the lock since has not changed anything that
 * this waiter waits for.
 */
function notify (word, count) {
  return agent().notifyWaiting(word.address, count)
}

/** A function that returns the milliseconds left of a time-out that begins now. */
function countdown (timeout) {
  if (timeout === Infinity) return () => Infinity
  const end = now() + timeout
  return () => max(0, end - now())
}

module.exports = {
  BARRIER, CONDITION, LATCH, NO_HOOKS, Notice, WAIT, blockFor, countdown, notify, nounOfWait, waitAsync, waitUntil, waitUntilAsync
}
