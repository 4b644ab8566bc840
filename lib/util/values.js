'use strict'

/** Questions about arbitrary values that run none of their code. A value may be a proxy, or have getters that throw. */

const { String, is, stringify } = require('./intrinsics')

exports.isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function'

/** Quotes a string for messages; of a long string, its beginning. */
const quote = (string) => stringify(string.length > 40 ? shortened(string) : string)
exports.quote = quote

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

/** Cuts a string after 40 characters. Uses no method of strings, since these may have been replaced. */
function shortened (string) {
  let start = ''
  for (let n = 0; n < 40; n++) start += string[n]
  return start + '…'
}
