'use strict'

/**
 * Whether a value is the error of a timeout. It may be of another copy of the package, or of another realm: so its code
 * tells. Never throws, whatever a getter or a proxy does.
 */

const { isObject } = require('./values')

module.exports = function isTimeoutError (error) {
  try {
    return isObject(error) && error.code === 'ERR_TIMEOUT'
  } catch (_) {
    return false
  }
}
