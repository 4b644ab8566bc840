'use strict'

/**
 * The options of methods that wait: `{ timeout, signal }`. Methods that run a callback with a lock
 * held also accept `repair`.
 */

const { TypeError, freeze } = require('../util/intrinsics')
const { assertOptions, describe, isObject, option } = require('../util/values')
const { isMainThread } = require('../util/worker-threads')

const { getPrototypeOf } = Reflect
const AsyncFunctionPrototype = getPrototypeOf(async () => {})

const UNLIMITED = freeze({ timeout: Infinity, signal: undefined, repair: undefined })
const KNOWN = ['timeout', 'signal']
const OF_CALLBACKS = ['timeout', 'signal', 'repair']
const OF_BLOCKING_CALLBACKS = ['timeout', 'repair', 'signal']
const SIGNAL = ['signal']

/**
 * @param {string} caller the method's name, for messages
 * @param {boolean} signals whether `signal` is an option: a blocked thread cannot hear it
 * @param {number} otherwise the timeout if none is given
 * @returns {{ timeout: number, signal: object | undefined }} `timeout`: from 0 to Infinity
 * @throws {TypeError} options, its timeout or its signal has a wrong type, or there is an unknown option
 */
function waitOptions (options, caller, signals = true, otherwise = Infinity) {
  if (options === undefined) return UNLIMITED
  assertOptions(options, KNOWN, caller, signals ? 2 : 1)
  return waitLimits(options, caller, signals, otherwise)
}

/** Validates the options of a wait only, as `waitOptions`: there may be others. */
function waitLimits (options, caller, signals, otherwise = Infinity) {
  const timeout = option(options, 'timeout', otherwise)
  const signal = option(options, 'signal')
  if (signal !== undefined) {
    if (!signals) throw new TypeError(caller + ' blocks and takes no signal: use the asynchronous form')
    assertSignal(signal, caller)
  }
  return { timeout: milliseconds(timeout, caller), signal, repair: undefined }
}

/**
 * Validates the options of a callback form: those of `waitOptions`, and `repair`.
 * @param {Function} [standard] the repair if none is given
 */
function callbackOptions (options, caller, signals, standard) {
  assertOptions(options, signals ? OF_CALLBACKS : OF_BLOCKING_CALLBACKS, caller, signals ? 3 : 2)
  const limits = waitLimits(options, caller, signals)
  limits.repair = option(options, 'repair', standard)
  if (limits.repair !== undefined) assertFunction(limits.repair, caller, 'repair')
  return limits
}

/** Reads the signal of options that may have nothing else. Undefined if they have none; throws as `waitOptions`. */
function signalOption (options, caller) {
  assertOptions(options, SIGNAL, caller)
  const signal = option(options, 'signal')
  if (signal !== undefined) assertSignal(signal, caller)
  return signal
}

/** Validates a timeout; negative ones become 0. */
function milliseconds (timeout, caller) {
  if (typeof timeout !== 'number' || timeout !== timeout) { // eslint-disable-line no-self-compare
    throw new TypeError(caller + ': timeout must be a number of milliseconds, not ' + describe(timeout))
  }
  return timeout > 0 ? timeout : 0
}

/** Keeps the rejection of a promise from being reported: another error is thrown. */
async function handleRejection (promise) {
  try {
    await promise
  } catch (_) {}
}

function assertSignal (signal, caller) {
  const hasState = typeof signal === 'object' && signal !== null && 'aborted' in signal
  if (hasState && typeof signal.addEventListener === 'function') return
  throw new TypeError(caller + ': signal must be an AbortSignal (an object with aborted and addEventListener), not ' +
    describe(signal))
}

/** @throws {TypeError} the argument called `name` is not a function */
function assertFunction (argument, caller, name = 'callback') {
  if (typeof argument !== 'function') {
    throw new TypeError(caller + ': ' + name + ' must be a function, not ' + describe(argument))
  }
}

/**
 * Refuses an async function before its body begins; any other function, by its result (`assertNoPromise`).
 * @param {string} twin the asynchronous form
 * @throws {TypeError} the argument called `name` is an async function, or none
 */
function assertSynchronous (argument, caller, twin, name = 'callback') {
  assertFunction(argument, caller, name)
  if (getPrototypeOf(argument) === AsyncFunctionPrototype) throw promised(caller + ': ' + name, twin)
}

/**
 * @param {string} what the function that a blocked thread has called
 * @param {string} twin the asynchronous form
 * @throws {TypeError} it has returned a promise, or another thenable
 */
function assertNoPromise (result, what, twin) {
  if (isObject(result) && typeof result.then === 'function') {
    handleRejection(result)
    throw promised(what, twin)
  }
}

const promised = (what, twin) => (
  new TypeError(what + ' must not return a promise, which a blocked thread cannot await: use ' + twin))

/** @throws {TypeError} on the main thread, which must not block; the message names the alternative */
function assertWorker (what, instead) {
  if (isMainThread) throw new TypeError(what + ' would block the main thread: use ' + instead)
}

module.exports = {
  UNLIMITED, assertFunction, assertNoPromise, assertSynchronous, assertWorker, callbackOptions, milliseconds,
  signalOption, waitLimits, waitOptions
}
