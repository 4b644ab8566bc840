'use strict'

/** Questions about arbitrary values that run none of their code. A value may be a proxy, or have getters that throw. */

const { String, TypeError, codeAt, getOwnPropertyDescriptor, is, keys, stringify } = require('./intrinsics')

const ObjectPrototype = Object.prototype

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function'

/**
 * Whether a value is the error of a timeout. It may be of another copy of the package, or of another realm: so its code
 * tells. Never throws, whatever a getter or a proxy does.
 */
function isTimeoutError (error) {
  try {
    return isObject(error) && error.code === 'ERR_TIMEOUT'
  } catch (_) {
    return false
  }
}

/** Reads an object's own property, but calls no getter. Structured cloning makes none. Undefined if there is none. */
function ownValue (object, key) {
  const property = getOwnPropertyDescriptor(object, key)
  const isData = property !== undefined && getOwnPropertyDescriptor(property, 'value') !== undefined
  return isData ? property.value : undefined
}

/** Quotes a string for messages; of a long string, its beginning. Terminals do not obey the text. */
function quote (string, longest = 40) {
  const quoted = stringify(string.length > longest ? shortened(string, longest) : string)
  let text = ''
  for (let n = 0; n < quoted.length; n++) text += isHidden(quoted[n]) ? escaped(quoted[n]) : quoted[n]
  return text
}

/**
 * Whether a terminal obeys the character, or shows it nowhere. JSON has these as they are. `is_hidden` in
 * core/src/json.rs has the same ones.
 */
const isHidden = (character) => character >= '\x7f' && (character <= '\x9f' || character === '\u061c' ||
  (character >= '\u200b' && character <= '\u200f') || (character >= '\u2028' && character <= '\u202e') ||
  (character >= '\u2060' && character <= '\u206f') || character === '\ufeff')

function escaped (character) {
  const code = codeAt(character, 0)
  let text = '\\u'
  for (let shift = 12; shift >= 0; shift -= 4) text += '0123456789abcdef'[(code >> shift) & 15]
  return text
}

function describe (value) {
  switch (typeof value) {
    case 'string': return 'the string ' + quote(value)
    case 'symbol': return 'a symbol'
    case 'bigint': return 'the BigInt ' + String(value)
    case 'function': return 'a function'
    case 'object': return value === null ? 'null' : 'an object'
    case 'number': return 'the number ' + (is(value, -0) ? '-0' : String(value))
    default: return String(value)
  }
}

/** Cuts a string. Uses no method of strings, since these may have been replaced. */
function shortened (string, length) {
  let start = ''
  for (let n = 0; n < length; n++) start += string[n]
  return start + '…'
}

// ——— Option objects, in which an unknown key is an error. So a misspelt option does not go unnoticed ———

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

module.exports = {
  assertOptions, describe, flag, includes, isObject, isTimeoutError, onlyFlag, option, ownValue, quote
}
