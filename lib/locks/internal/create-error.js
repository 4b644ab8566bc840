'use strict'

/** Errors with a `code` and a `name`, also where `Error.prototype` is frozen, so that assigning a name would throw. */

const { Error, define } = require('../../util/intrinsics')

/**
 * @param {string} message
 * @param {string} code
 * @param {string} [name] if not 'Error'
 */
module.exports = function createError (message, code, name) {
  const error = new Error(message)
  if (name !== undefined) define(error, 'name', name, true, true)
  define(error, 'code', code, true, true)
  return error
}
