'use strict'

/** Where the state of something in this directory lies: checks of the arguments that its constructors share. */

const { IsSharedArrayBuffer, byteOffset: byteOffsetOf } = require('../abstract-operations')
const describe = require('../describe')
const { Int32Array, RangeError, TypeError, apply, getSharedByteLength, isInteger } = require('../intrinsics')
const { option, requireOptions } = require('../options')
const { agent } = require('../settle')
const { setWord } = require('./word-of')

const BYTES = 4
/** On Node 10, Atomics take the offset of a typed array modulo this, and so reach another word. */
const WRAPS = parseInt(process.versions.node) < 12 ? 2 ** 32 : Infinity
const KNOWN = ['byteOffset']

/**
 * A view of one word of a SharedArrayBuffer.
 *
 * @param {SharedArrayBuffer} buffer
 * @param {{ byteOffset?: number } | undefined} options
 * @param {string} owner the class, for messages
 * @param {string[]} known the names of all options of the class
 * @throws {TypeError} buffer is no SharedArrayBuffer, byteOffset no integer, or there is another option
 * @throws {RangeError} byteOffset is no multiple of 4, or the word does not fit into the buffer or is out of reach
 */
function sharedWord (buffer, options, owner, known) {
  if (!IsSharedArrayBuffer(buffer)) {
    throw new TypeError(owner + ': buffer must be a SharedArrayBuffer, not ' + describe(buffer))
  }
  requireOptions(options, known, owner)
  const byteOffset = option(options, 'byteOffset', 0)
  if (!isInteger(byteOffset)) {
    throw new TypeError(owner + ': byteOffset must be an integer, not ' + describe(byteOffset))
  }
  const last = apply(getSharedByteLength, buffer, []) - BYTES
  if (byteOffset < 0 || byteOffset > last || byteOffset % BYTES !== 0) {
    throw new RangeError(owner + ': byteOffset must be a multiple of 4 from 0 to ' + last + ', so that ' + BYTES +
      ' bytes fit into the buffer, not ' + describe(byteOffset))
  }
  if (byteOffset >= WRAPS) {
    throw new RangeError(owner + ': byteOffset must be less than ' + WRAPS + ' on Node 10, whose Atomics would reach another word, not ' +
      describe(byteOffset))
  }
  return new Int32Array(buffer, byteOffset, 1)
}

/** Makes an instance one whose state is the word that its constructor was told. Throws as `sharedWord`; gives the word. */
function becomeWord (instance, buffer, options, owner, known = KNOWN) {
  const array = sharedWord(buffer, options, owner, known)
  setWord(instance, agent().holdings.createWord(array))
  return array
}

/** The same, with the properties that say where it is. */
function becomeView (instance, buffer, options, owner, known) {
  const array = becomeWord(instance, buffer, options, owner, known)
  instance.buffer = buffer
  instance.byteOffset = byteOffsetOf(array)
}

module.exports = { becomeView, becomeWord }
