'use strict'

/**
 * The word that a view shows: an instance of a class of locks or queues.
 *
 * A word has its address, and native code reads and writes there. If the word were a property of the instance, any code
 * could read and change the address. So the instance has it in a private field, where the host has those. For proxies,
 * which have no private fields, and for older hosts it also has a function that puts its word into an object of this
 * module. If other code replaces that function, it can at worst show the word of another instance that it knows.
 */

const { runInThisContext } = require('vm')
const { TypeError, define } = require('../util/intrinsics')
const { IsSharedArrayBuffer } = require('../util/typed-arrays')
const { describe, isObject, ownValue } = require('../util/values')

const SHOW = Symbol('atomics-waitasync.word')

/**
 * The word that an instance shows. A property, because V8 14.6 (Node 26) reads a stale value of a variable that an
 * inlined function has assigned.
 */
const shown = { word: undefined }

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
const View = createView()
const wordIn = View === undefined ? () => undefined : View.wordOf

function createView () {
  try {
    return runInThisContext(VIEW)
  } catch (_) {
    return undefined
  }
}

/** Lets an instance show a word. */
function show (instance, word) {
  define(instance, SHOW, () => { shown.word = word })
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
  const show = isObject(instance) ? instance[SHOW] : undefined
  if (show === undefined) refuse(instance)
  // Cleared before, since a function that is not ours may throw and leave a word here; and after,
  // since it may show others.
  shown.word = undefined
  show()
  const { word } = shown
  shown.word = undefined
  return word === undefined ? refuse(instance) : word
}

function refuse (instance) {
  const isClone = isObject(instance) && IsSharedArrayBuffer(ownValue(instance, 'buffer'))
  throw new TypeError('this method must be called on a lock, or on another object of that family, not on ' +
    (isClone ? 'the clone of one: give it to the constructor of its class'
      : instance === undefined ? 'undefined: call it as a method, or bind it' : describe(instance)))
}

module.exports = { fieldOf, show, wordOf: View === undefined ? wordShownBy : wordOf }
