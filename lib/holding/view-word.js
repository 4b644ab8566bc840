'use strict'

/**
 * The word that a view shows: an instance of a class of locks or queues.
 *
 * A word has its address, and native code reads and writes there. If the word were a property of the instance, any code
 * could read and change the address. So the instance has it in a private field, where the host has those; and as a
 * secret, for proxies, which have no private fields, and for older hosts.
 */

const { runInThisContext } = require('vm')
const { IsSharedArrayBuffer, TypeError, define } = require('../util/intrinsics')
const { createSecrets } = require('../util/instances')
const { describe, isObject, ownValue } = require('../util/values')

const { KEY, hidden, reveal } = createSecrets('atomics-waitasync.word')

/**
 * Gives any object a private field: a constructor whose super constructor returns an object makes that its `this`. It
 * is a text, since older engines cannot parse it, and the files that are published are of their syntax.
 */
const VIEW = `'use strict';
(class View extends class { constructor (instance) { return instance } } {
  #word
  constructor (instance, word) {
    super(instance)
    this.#word = word
  }
  static wordOf (instance) { return instance.#word }
})`

/** Undefined before Node 12. */
let View
try {
  View = runInThisContext(VIEW)
} catch (_) {}
const wordIn = View === undefined ? () => undefined : View.wordOf

function show (instance, word) {
  define(instance, KEY, hidden(word))
  if (View !== undefined) new View(instance, word) // eslint-disable-line no-new
}

/** Returns the word in an instance's private field. Undefined of anything that has none. */
function fieldOf (instance) {
  try {
    return wordIn(instance)
  } catch (_) {
    return undefined
  }
}

/** @throws {TypeError} the instance shows no word */
function wordOf (instance) {
  try {
    return wordIn(instance)
  } catch (_) {
    return wordShownBy(instance)
  }
}

function wordShownBy (instance) {
  const word = reveal(instance)
  if (word !== undefined) return word
  const isClone = isObject(instance) && IsSharedArrayBuffer(ownValue(instance, 'buffer'))
  throw new TypeError('this method must be called on a lock, or on another object of that family, not on ' +
    (isClone ? 'the clone of one: give it to the constructor of its class'
      : instance === undefined ? 'undefined: call it as a method, or bind it' : describe(instance)))
}

module.exports = { fieldOf, show, wordOf: View === undefined ? wordShownBy : wordOf }
