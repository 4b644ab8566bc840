'use strict'

/** Waits until a word says so, blocking or by a promise: the basis of Barrier and Latch. */

const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { load, max, now } = require('../util/intrinsics')
const { hideFrames, timeoutError } = require('./errors')
const { NOTIFIED, WAIT_KINDS, nounOf } = require('./kinds')
const { waitAsync } = require('./notice')
const observer = require('./observer')

/** The bytes of a word. */
const BYTES = 4

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
  const recorded = observer.recordBegins(sample, nounOfWait, { address, waitKind })
  native.words[CALL] = place
  try {
    return waitFor(address, value, timeout, waitKind)
  } finally {
    if (recorded !== undefined) observer.recordEnds(recorded)
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

module.exports = { blockFor, countdown, notify, nounOfWait, waitUntil, waitUntilAsync }
