'use strict'

const { String, is, stringify } = require('./intrinsics')

/**
 * Says what an argument was, for error messages. Runs no code of the value's: it may be a proxy, or have getters that throw.
 */
module.exports = function describe (value) {
  switch (typeof value) {
    case 'string': return 'the string ' + stringify(value.length > 40 ? shortened(value) : value)
    case 'symbol': return 'a symbol'
    case 'bigint': return 'the BigInt ' + String(value)
    case 'function': return 'a function'
    case 'object': return value === null ? 'null' : 'an object'
    case 'number': return 'the number ' + (is(value, -0) ? '-0' : String(value))
    default: return String(value)
  }
}

/** The first 40 characters. Not by a method of strings: it may have been replaced. */
function shortened (string) {
  let start = ''
  for (let n = 0; n < 40; n++) start += string[n]
  return start + '…'
}
