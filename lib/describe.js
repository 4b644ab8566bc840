'use strict'

/**
 * Says what an argument was, for error messages. Runs no code of the value's: it may be a proxy, or have getters that throw.
 */
module.exports = function describe (value) {
  switch (typeof value) {
    case 'string': return 'the string ' + JSON.stringify(value.length > 40 ? value.slice(0, 40) + '…' : value)
    case 'symbol': return 'a symbol'
    case 'bigint': return 'the BigInt ' + String(value)
    case 'function': return 'a function'
    case 'object': return value === null ? 'null' : 'an object'
    case 'number': return 'the number ' + (Object.is(value, -0) ? '-0' : String(value))
    default: return String(value)
  }
}
