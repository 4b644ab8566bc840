'use strict'

/** The errors of locks and their family. They can be made even where `Error.prototype` is frozen, so that assigning a name would throw. */

const { Error, define } = require('../../util/intrinsics')

function createError (message, code, name) {
  const error = new Error(message)
  if (name !== undefined) define(error, 'name', name, true, true)
  define(error, 'code', code, true, true)
  return error
}

/** @param {string} what the wait was for */
const timeoutError = (what, timeout) =>
  createError('Timed out after ' + timeout + ' ms waiting for ' + what, 'ERR_TIMEOUT', 'TimeoutError')

const notLocked = (message) => createError(message, 'ERR_NOT_LOCKED')

/** The error of a thread that would wait for itself; `does` is 'holds it' or 'awaits it'. */
const deadlock = (caller, does) => createError(caller + ': this thread ' + does + ' already and would wait for itself', 'ERR_DEADLOCK')

/** A signal's reason, or an AbortError where signals have none. */
function abortReason (signal) {
  const { reason } = signal
  return reason === undefined ? createError('The operation was aborted', 'ABORT_ERR', 'AbortError') : reason
}

/** Throws a signal's reason if it is aborted. */
function throwIfAborted (signal) {
  if (signal !== undefined && signal.aborted) throw abortReason(signal)
}

module.exports = { abortReason, deadlock, notLocked, throwIfAborted, timeoutError }
