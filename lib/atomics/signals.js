'use strict'

/**
 * The exported `waitAsync`'s fifth argument, `{ signal }`, which cancels the wait. The standard has no such argument.
 *
 * An abort dequeues the waiter at once, so that no notification is spent on it, and rejects the promise. If a
 * notification came first, the promise is fulfilled. Only the package's own queue can do that.
 */

const { agent, assertStack } = require('../agent/find-agent')
const { Promise, TypeError } = require('../util/intrinsics')
const { readReason, waitKinds: { WAIT } } = require('../waiting/errors')
const { signalOption } = require('../waiting/wait-options')
const { NO_HOOKS, Notice } = require('../waiting/notice')
const observer = require('../waiting/observer')

/** Reads the signal of the fifth argument, if there is one. */
const signalOf = (options) => signalOption(options, 'waitAsync')

/** A wait of the program for a value that it chooses itself. */
class Wait extends Notice {
  constructor (typedArray, address, wide, value, options, resolve, reject) {
    super({ array: typedArray, address }, value, options, undefined, WAIT, NO_HOOKS, resolve, reject)
    this.wide = wide
    this.result = undefined
    this.place = observer.callHere()
  }

  get call () {
    return this.place
  }

  /** Keeps a result that there is at once: then there is no promise. */
  finish (result) {
    this.result = result
  }

  /** Undefined: a loop that runs dry warns of no wait for a value. */
  get pendingNote () {
    return undefined
  }
}

/**
 * Waits with valid arguments, a timeout other than 0, and a signal. Whether the signal is aborted is checked after the
 * comparison: without a wait there is nothing to cancel.
 */
function waitWithSignal (typedArray, address, wide, value, timeout, signal) {
  let wait
  // The constructor would turn a stack overflow in its executor into a rejection, which nobody could handle.
  assertStack()
  const promise = new Promise((resolve, reject) => {
    wait = new Wait(typedArray, address, wide, value, { timeout, signal }, resolve, reject)
  })
  // Made now, as in functions.js.
  const pending = { async: true, value: promise }
  if (signal.aborted) {
    wait.timeout = 0
    if (wait.enqueue() === 'not-equal') return { async: false, value: 'not-equal' }
    wait.reject(readReason(signal))
    return pending
  }
  wait.begin()
  if (wait.slot >= 0) agent().remember(promise, wait)
  return wait.result === undefined ? pending : { async: false, value: wait.result }
}

/** @throws {TypeError} there is a signal, but the wait is in the host's queue; `why` says why it is there */
function refuseSignal (options, why) {
  if (signalOf(options) !== undefined) {
    throw new TypeError('waitAsync: a signal cannot cancel a wait in the host\'s queue, where ' + why)
  }
}

module.exports = { refuseSignal, signalOf, waitWithSignal }
