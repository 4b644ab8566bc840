'use strict'

/** Errors as everything in this directory makes them: also where `Error.prototype` is frozen, and assigning a name to an error throws. */

const { Error, define } = require('../intrinsics')

/**
 * @param {string} message
 * @param {string} code
 * @param {string} [name] other than "Error"
 */
module.exports = function createError (message, code, name) {
  const error = new Error(message)
  if (name !== undefined) define(error, 'name', name, true, true)
  define(error, 'code', code, true, true)
  return error
}
