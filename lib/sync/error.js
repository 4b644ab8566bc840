'use strict'

/** Errors as everything in this directory makes them: also where `Error.prototype` is frozen, and assigning a name to an error throws. */

const { defineProperty } = Reflect

/**
 * @param {string} message
 * @param {string} code
 * @param {string} [name] other than "Error"
 */
module.exports = function createError (message, code, name) {
  const error = new Error(message)
  if (name !== undefined) define(error, 'name', name)
  define(error, 'code', code)
  return error
}

function define (error, key, value) {
  // Of nothing, since a descriptor inherits from what is done to Object.prototype.
  defineProperty(error, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true })
}
