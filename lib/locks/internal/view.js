'use strict'

/**
 * What all locks and their family have in common: an instance is a view of one word of a SharedArrayBuffer.
 *
 * A word has its address, and native code reads and writes there. If the word were a property of the instance, any code could read
 * and change the address. So the instance has a function that puts its word into an object of this module. If other code
 * replaces that function, it can at worst show the word of another instance that it knows.
 */

const util = require('util')
const NODE_VERSION = require('../../util/node-version')
const { Int32Array, RangeError, TypeError, define, isInteger, shield } = require('../../util/intrinsics')
const { option, requireOptions } = require('../../util/options')
const { IsSharedArrayBuffer, byteOffset: byteOffsetOf, sharedByteLength } = require('../../util/typed-arrays')
const { describe } = require('../../util/values')
const { robustList } = require('./robust-list')

const BYTES = 4
/** On Node 10, Atomics take the offset of a typed array modulo this, and so would access another word. */
const WRAPS = NODE_VERSION < 12 ? 2 ** 32 : Infinity
const SHOW = Symbol('atomics-waitasync.word')

/**
 * The word that an instance shows. A property, because V8 14.6 (Node 26) reads a stale value of a variable that an inlined function
 * has assigned.
 */
const shown = { word: undefined }

/**
 * Makes an instance a view of a word, to be called by its constructor.
 *
 * @param {SharedArrayBuffer} buffer
 * @param {{ byteOffset?: number } | undefined} options
 * @param {string} owner the class, for messages
 * @param {string[]} [known] the names of all options of the class
 * @returns {Int32Array} on the word
 * @throws {TypeError} buffer is no SharedArrayBuffer, byteOffset no integer, or there is an unknown option
 * @throws {RangeError} byteOffset is no multiple of 4, or the word does not fit into the buffer or cannot be accessed
 */
function becomeWord (instance, buffer, options, owner, known = ['byteOffset']) {
  if (!IsSharedArrayBuffer(buffer)) {
    throw new TypeError(owner + ': buffer must be a SharedArrayBuffer, not ' + describe(buffer))
  }
  requireOptions(options, known, owner)
  const byteOffset = option(options, 'byteOffset', 0)
  if (!isInteger(byteOffset)) {
    throw new TypeError(owner + ': byteOffset must be an integer, not ' + describe(byteOffset))
  }
  const last = sharedByteLength(buffer) - BYTES
  if (byteOffset < 0 || byteOffset > last || byteOffset % BYTES !== 0) {
    throw new RangeError(owner + ': byteOffset must be a multiple of 4 from 0 to ' + last + ', so that ' + BYTES +
      ' bytes fit into the buffer, not ' + describe(byteOffset))
  }
  if (byteOffset >= WRAPS) {
    throw new RangeError(owner + ': byteOffset must be less than ' + WRAPS + ' on Node 10, whose Atomics would access another word, not ' +
      describe(byteOffset))
  }
  const array = new Int32Array(buffer, byteOffset, 1)
  const word = robustList().createWord(array)
  define(instance, SHOW, () => { shown.word = word })
  return array
}

/** The same, with the properties that tell the word's place. */
function becomeView (instance, buffer, options, owner, known) {
  const array = becomeWord(instance, buffer, options, owner, known)
  instance.buffer = buffer
  instance.byteOffset = byteOffsetOf(array)
}

/**
 * The word of an instance.
 * @throws {TypeError} it has none
 */
function wordOf (instance) {
  const show = instance[SHOW]
  if (show === undefined) refuse(instance)
  // Cleared before, since a function that is not ours may throw and leave a word here; and after, since it may show others.
  shown.word = undefined
  show()
  const { word } = shown
  shown.word = undefined
  return word === undefined ? refuse(instance) : word
}

function refuse (instance) {
  throw new TypeError('this method must be called on a lock, or on another object of that family, not on ' + describe(instance))
}

/**
 * Completes a class of views.
 * @param {string[]} keys the properties that its constructor assigns
 * @param {(instance: object, word: object) => object} stateOf what `util.inspect` shows
 */
function defineView (Class, keys, stateOf) {
  shield(Class, keys)
  define(Class, 'byteLength', BYTES, true)
  define(Class.prototype, util.inspect.custom, function inspect (depth, options) {
    return this.constructor.name + ' ' + util.inspect(stateOf(this, wordOf(this)), options)
  }, false, true)
}

module.exports = { becomeView, becomeWord, defineView, wordOf }
