'use strict'

/** Where the state of something in this directory lies: checks of the arguments that its constructors share. */

const describe = require('../describe')
const { IsSharedArrayBuffer } = require('../abstract-operations')

/**
 * A view of `length` words of a SharedArrayBuffer.
 *
 * @param {SharedArrayBuffer} buffer
 * @param {{ byteOffset?: number } | undefined} options
 * @param {string} owner the class, for messages
 * @throws {TypeError} buffer is no SharedArrayBuffer, or byteOffset no integer
 * @throws {RangeError} byteOffset is no multiple of 4, or the words do not fit into the buffer
 */
module.exports = function sharedWords (buffer, options, owner, length = 1) {
  if (!IsSharedArrayBuffer(buffer)) {
    throw new TypeError(owner + ': buffer must be a SharedArrayBuffer, not ' + describe(buffer))
  }
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw new TypeError(owner + ': options must be an object, not ' + describe(options))
  }
  const given = options === undefined ? undefined : options.byteOffset
  const byteOffset = given === undefined ? 0 : given
  if (!Number.isInteger(byteOffset)) {
    throw new TypeError(owner + ': byteOffset must be an integer, not ' + describe(given))
  }
  const bytes = length * Int32Array.BYTES_PER_ELEMENT
  const last = new Uint8Array(buffer).length - bytes
  if (byteOffset < 0 || byteOffset > last || byteOffset % Int32Array.BYTES_PER_ELEMENT !== 0) {
    throw new RangeError(owner + ': byteOffset must be a multiple of 4 from 0 to ' + last + ', so that ' + bytes +
      ' bytes fit into the buffer, not ' + describe(given === undefined ? 0 : given))
  }
  return new Int32Array(buffer, byteOffset, length)
}
