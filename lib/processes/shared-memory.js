'use strict'

/** Memory that several processes share, as a SharedArrayBuffer. src/mapped/ has the files. */

const path = require('path')
const { RangeError, TypeError, isInteger } = require('../util/intrinsics')
const { describe } = require('../util/values')
const { assertPath } = require('./arguments')
const { mapped } = require('./engines/native')

/**
 * Returns the memory in a file; makes it full of zeros if need be.
 * @param {string} file on a drive of this machine: tmpfs, ext4, xfs or btrfs
 * @param {number} byteLength
 * @throws {TypeError | RangeError} with code ERR_SHARED_MEMORY_LENGTH if the file's memory has another length
 * @throws {Error} with code ERR_SHARED_MEMORY_UNAVAILABLE if the system or this Node cannot share memory, or with
 *   ERR_SHARED_MEMORY_INVALID if the file is not of this package, a link, or another user's
 */
function sharedMemory (file, byteLength) {
  assertPath(file, 'sharedMemory', 'file')
  if (typeof byteLength !== 'number') {
    throw new TypeError('sharedMemory: byteLength must be a number, not ' + describe(byteLength))
  }
  if (!isInteger(byteLength) || byteLength < 1 || byteLength > Number.MAX_SAFE_INTEGER) {
    throw new RangeError('sharedMemory: byteLength must be an integer from 1 to 2^53 - 1, not ' + describe(byteLength))
  }
  return mapped('sharedMemory', path.resolve(file), byteLength)
}

module.exports = sharedMemory
