'use strict'

/** Questions about arbitrary values that run none of their code. A value may be a proxy, or have getters that throw. */

const { String, codeAt, getOwnPropertyDescriptor, is, stringify } = require('./intrinsics')

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function'
exports.isObject = isObject

/**
 * Whether a value is the error of a timeout. It may be of another copy of the package, or of another realm: so its code
 * tells. Never throws, whatever a getter or a proxy does.
 */
exports.isTimeoutError = function isTimeoutError (error) {
  try {
    return isObject(error) && error.code === 'ERR_TIMEOUT'
  } catch (_) {
    return false
  }
}

/** Reads an object's own property, but calls no getter. Structured cloning makes none. Undefined if there is none. */
exports.ownValue = function ownValue (object, key) {
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
exports.quote = quote

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

/** Describes a value for an error message. */
exports.describe = function describe (value) {
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
