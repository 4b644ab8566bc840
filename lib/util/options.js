'use strict'

/** Option objects, in which an unknown key is an error. So a misspelt option does not go unnoticed. */

const { TypeError, getOwnPropertyDescriptor, keys } = require('./intrinsics')
const { describe, quote } = require('./values')

const ObjectPrototype = Object.prototype

/**
 * @param {unknown} options undefined: there are none
 * @param {string[]} known the names of all options; those that this caller does not offer come last
 * @param {string} caller the function's name, for the message
 * @param {number} [offered] how many of the names the message lists
 * @throws {TypeError} options is not an object, or has an unknown key
 */
function assertOptions (options, known, caller, offered = known.length) {
  if (options === undefined) return
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(caller + ': options must be an object, not ' + describe(options))
  }
  const given = keys(options)
  for (let n = 0; n < given.length; n++) {
    if (!includes(known, given[n])) {
      throw new TypeError(caller + ': options may have ' + listed(known, offered) + ', not ' + quote(given[n]))
    }
  }
}

/**
 * Reads an option's value; if it is undefined, returns `otherwise`. The value may be inherited, but not
 * from `Object.prototype`.
 */
function option (options, name, otherwise) {
  if (options === undefined) return otherwise
  const value = options[name]
  if (value === undefined) return otherwise
  const isOfAll = ObjectPrototype[name] !== undefined && getOwnPropertyDescriptor(options, name) === undefined
  return isOfAll ? otherwise : value
}

/**
 * Reads an option that is true or false, by default false.
 * @throws {TypeError} it is neither
 */
function flag (options, name, caller) {
  const value = option(options, name, false)
  if (typeof value === 'boolean') return value
  throw new TypeError(caller + ': ' + name + ' must be a boolean, not ' + describe(value))
}

/** Reads the one option that there is, a flag. */
function onlyFlag (options, name, caller) {
  assertOptions(options, [name], caller)
  return flag(options, name, caller)
}

// These use no methods of arrays, which may have been replaced.

function includes (names, name) {
  for (let n = 0; n < names.length; n++) if (names[n] === name) return true
  return false
}

function listed (names, count) {
  let text = names[0]
  for (let n = 1; n < count; n++) text += (n === count - 1 ? ' and ' : ', ') + names[n]
  return text
}

module.exports = { assertOptions, flag, includes, onlyFlag, option }
