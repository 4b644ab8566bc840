'use strict'

/**
 * From an instance of a class in this directory to its word (see holdings.js), which nothing but this package can get hold of.
 *
 * A word has its address, and native code reads and writes where that says. If the word were a property of the instance, any code
 * could read the address and change it. Instead the instance has a function that puts its word into a variable of this module. A
 * function that somebody else has put there cannot do that, so at worst the answer is the word of another instance, of which that
 * code has got hold.
 */

const describe = require('../describe')
const { TypeError, define } = require('../intrinsics')

const SHOW = Symbol('atomics-waitasync.word')

let shown

/** Gives an instance its word, for good. */
function setWord (instance, word) {
  define(instance, SHOW, () => { shown = word })
}

/**
 * The word of an instance.
 * @throws {TypeError} it has none
 */
function wordOf (instance) {
  const show = instance[SHOW]
  if (show === undefined) refuse(instance)
  // Before, for what is left if a function throws that is not ours. And after: while such a function runs, others may be shown.
  shown = undefined
  show()
  const word = shown
  shown = undefined
  return word === undefined ? refuse(instance) : word
}

function refuse (instance) {
  throw new TypeError('a method of a lock, or of one of its family, was called on what is none: on ' + describe(instance))
}

module.exports = { setWord, wordOf }
