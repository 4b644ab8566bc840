'use strict'

/**
 * The options that everything in this directory takes that waits: `{ timeout, signal }`. And the errors with which waiting ends.
 */

const describe = require('../describe')
const { TypeError, freeze } = require('../intrinsics')
const { option, requireOptions } = require('../options')
const createError = require('./error')

const UNLIMITED = freeze({ timeout: Infinity, signal: undefined })
const KNOWN = ['timeout', 'signal']

/**
 * @param {{ timeout?: number, signal?: AbortSignal } | undefined} options
 * @param {string} caller the method's name, for the message
 * @param {boolean} signals whether `signal` is an option: a blocked thread could not hear it
 * @param {number} otherwise the time-out where none is given
 * @returns {{ timeout: number, signal: object | undefined }} `timeout`: from 0 to Infinity
 * @throws {TypeError} options, its timeout or its signal is of a wrong type, or there is another option
 */
function waitOptions (options, caller, signals = true, otherwise = Infinity) {
  if (options === undefined) return UNLIMITED
  requireOptions(options, KNOWN, caller, signals ? 2 : 1)
  const timeout = option(options, 'timeout', otherwise)
  const signal = option(options, 'signal')
  if (signal !== undefined && !(signals && isSignal(signal))) {
    throw new TypeError(signals
      ? caller + ': signal must be an AbortSignal (an object with aborted and addEventListener), not ' + describe(signal)
      : caller + ' blocks and cannot hear a signal: use the asynchronous form')
  }
  return { timeout: milliseconds(timeout, caller), signal }
}

/** What was given as a time-out, from 0 on. */
function milliseconds (timeout, caller) {
  if (typeof timeout !== 'number' || timeout !== timeout) { // eslint-disable-line no-self-compare
    throw new TypeError(caller + ': timeout must be a number of milliseconds, not ' + describe(timeout))
  }
  return timeout > 0 ? timeout : 0
}

function isSignal (signal) {
  return typeof signal === 'object' && signal !== null && 'aborted' in signal && typeof signal.addEventListener === 'function'
}

function timeoutError (what, timeout) {
  return createError(what + ' within ' + timeout + ' ms', 'ERR_TIMEOUT', 'TimeoutError')
}

/** What an abort rejects with: the signal's reason, or an AbortError where signals have none. */
function abortReason (signal) {
  const { reason } = signal
  return reason === undefined ? createError('The operation was aborted', 'ABORT_ERR', 'AbortError') : reason
}

/** @throws {TypeError} the argument called `name` is not a function */
function requireFunction (argument, caller, name = 'callback') {
  if (typeof argument !== 'function') {
    throw new TypeError(caller + ': ' + name + ' must be a function, not ' + describe(argument))
  }
}

module.exports = { abortReason, milliseconds, requireFunction, timeoutError, waitOptions }
