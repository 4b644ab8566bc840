'use strict'

/**
 * The options that everything in this directory takes that waits: `{ timeout, signal }`. And the errors with which waiting ends.
 */

const { ToTimeout } = require('../abstract-operations')
const describe = require('../describe')
const createError = require('./error')

const UNLIMITED = Object.freeze({ timeout: Infinity, signal: undefined })

/**
 * @param {{ timeout?: number, signal?: AbortSignal } | undefined} options
 * @param {string} caller the method's name, for the message
 * @param {boolean} signals whether `signal` is an option: a blocked thread could not hear it
 * @returns {{ timeout: number, signal: object | undefined }}
 * @throws {TypeError} options, its timeout or its signal is of a wrong type
 */
function waitOptions (options, caller, signals = true) {
  if (options === undefined) return UNLIMITED
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(caller + ': options must be an object, not ' + describe(options))
  }
  const { timeout, signal } = options
  if (signal !== undefined && !(signals && isSignal(signal))) {
    throw new TypeError(signals
      ? caller + ': signal must be an AbortSignal (an object with aborted and addEventListener), not ' + describe(signal)
      : caller + ' blocks and cannot hear a signal: use the asynchronous form')
  }
  return { timeout: ToTimeout(timeout), signal }
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

module.exports = { abortReason, requireFunction, timeoutError, waitOptions }
