'use strict'

/** Memory that several processes share, as a SharedArrayBuffer. src/mapped/ has the files. */

const path = require('path')
const { agent } = require('../agent/find-agent')
const { Error, RangeError, TypeError, define, isInteger } = require('../util/intrinsics')
const { describe } = require('../util/values')
const { show } = require('./errors')
const { systemError } = require('./engines/native')

const NAMES = {
  ERR_SHARED_MEMORY_UNAVAILABLE: 'There is no shared memory',
  ERR_SHARED_MEMORY_INVALID: 'The file is no shared memory of this package'
}

/**
 * Returns the memory in a file, which is made full of zeros if it is not there.
 * @param {string} file on a drive of this machine: tmpfs, ext4, xfs or btrfs
 * @param {number} byteLength
 * @throws {TypeError | RangeError} with code ERR_SHARED_MEMORY_LENGTH if the file's memory has another length
 * @throws {Error} with code ERR_SHARED_MEMORY_UNAVAILABLE if the system or this Node cannot share memory, or with
 *   ERR_SHARED_MEMORY_INVALID if the file is not of this package, a link, or another user's
 */
function sharedMemory (file, byteLength) {
  if (typeof file !== 'string' || file === '') {
    throw new TypeError('sharedMemory: file must be a path, not ' + describe(file))
  }
  if (typeof byteLength !== 'number') {
    throw new TypeError('sharedMemory: byteLength must be a number, not ' + describe(byteLength))
  }
  if (!isInteger(byteLength) || byteLength < 1 || byteLength > Number.MAX_SAFE_INTEGER) {
    throw new RangeError('sharedMemory: byteLength must be an integer from 1 to 2^53 - 1, not ' + describe(byteLength))
  }
  const whole = path.resolve(file)
  try {
    return agent().native.binding.sharedMemory(whole, byteLength)
  } catch (error) {
    throw errorOf(error, whole, byteLength)
  }
}

function errorOf (error, file, byteLength) {
  const [, code, what] = /^(ERR_SHARED_MEMORY_[A-Z]+) ([^]*)$/.exec(error.message) || []
  if (code === undefined) return systemError(error.message, error)
  const made = code === 'ERR_SHARED_MEMORY_LENGTH'
    ? new RangeError(show(file) + ' has ' + what + ' bytes of shared memory, not ' + byteLength)
    : new Error(NAMES[code] + ' at ' + show(file) + ': ' + what)
  define(made, 'code', code, true, true)
  return made
}

module.exports = sharedMemory
