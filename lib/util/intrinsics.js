'use strict'

/**
 * Built-ins as they were at load, and collections without a prototype's changes.
 *
 * Any code in the thread can replace a global or patch a prototype. It must not get hold of the package's internal
 * objects, since some of them contain memory addresses. So the code that handles such objects follows four rules:
 * - It takes built-ins from here.
 * - It calls no method of a built-in's prototype on an internal object: a patched method would receive that object. The
 *   collections that are made here have the methods as properties of their own.
 * - The arrays and instances that it fills have no prototype (`createArray`, `bare`), or one that defines these
 *   properties (`shield`): an assignment to a property that does not exist yet would call a setter of the prototype.
 * - It defines properties by `define` and `defineProperty` of this module: a descriptor would inherit fields from
 *   `Object.prototype`, as the handler of a proxy would inherit traps, which therefore has no prototype. ESLint sees
 *   to both, in all of lib/.
 */

const { REGISTRIES_HANG, globalObject } = require('./quirks')

// BigInt, BigInt64Array, FinalizationRegistry and WeakRef do not exist on every Node, nor do buffers that grow. Their
// constants here are undefined then.
const {
  Array, ArrayBuffer, BigInt, BigInt64Array, Error, FinalizationRegistry, Float64Array, Int32Array, Map, Promise,
  RangeError, SharedArrayBuffer, String, TypeError, WeakMap, WeakRef, WeakSet
} = globalObject

if (SharedArrayBuffer === undefined || typeof Atomics === 'undefined') {
  throw new Error('atomics-waitasync needs SharedArrayBuffer and Atomics, which are missing here. Node has none ' +
    'while it builds a startup snapshot: load the package in the snapshot\'s main function')
}

const { add, compareExchange, load, or, store, sub } = Atomics
const { clz32, max, min, trunc } = Math
const { isInteger } = Number
const { assign, freeze, is, isFrozen, keys } = Object
// eslint-disable-next-line no-restricted-syntax -- the two that all other files have for it are made of this one
const { apply, defineProperty: defineBy, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect
const { parse, stringify } = JSON
// A test may have put fake ones in place before the first use: see `asAtLoad`.
let { hrtime, nextTick } = process

const TypedArrayPrototype = getPrototypeOf(Int32Array.prototype)
const { sort } = Array.prototype
const { charCodeAt } = String.prototype
/** Makes a function that calls a property's built-in getter: no other property can shadow that. */
function reader (prototype, key) {
  const property = getOwnPropertyDescriptor(prototype, key)
  return property && ((object) => apply(property.get, object, []))
}
const sharedByteLengthOf = reader(SharedArrayBuffer.prototype, 'byteLength')

/** Defines a property: without further arguments, one that is not enumerable and cannot be changed. */
function define (object, key, value, enumerable = false, writable = false) {
  return defineBy(object, key, { __proto__: null, value, enumerable, writable, configurable: writable })
}

/** Defines a property by a descriptor, of which only own fields count. */
function defineProperty (object, key, descriptor) {
  return defineBy(object, key, assign({ __proto__: null }, descriptor))
}

/** Makes a function that makes collections. They have their prototype's present methods as own properties. */
function maker (Class, names) {
  const methods = Class && names.map((name) => [name, Class.prototype[name]])
  return Class && ((argument) => {
    const collection = new Class(argument)
    for (let n = 0; n < methods.length; n++) define(collection, methods[n][0], methods[n][1])
    return collection
  })
}

module.exports = {
  ArrayBuffer, BigInt64Array, Error, Float64Array, Int32Array, Promise, RangeError, SharedArrayBuffer, String,
  TypeError, add, apply, assign, clz32, compareExchange, define, defineProperty, freeze, getOwnPropertyDescriptor, is,
  isInteger, keys, load, max, min, or, parse, setPrototypeOf, sort, store, stringify, sub, trunc,

  /** Appends to an array; `push` would call the setters of prototypes. */
  append (array, value) {
    define(array, array.length, value, true, true)
  },
  asIntN: BigInt && BigInt.asIntN,
  captureStackTrace: Error.captureStackTrace,
  /** Returns a code unit of a string. */
  codeAt: (string, index) => apply(charCodeAt, string, [index]),
  /** Has these functions of `process` used: the plain entry was loaded before this file. */
  asAtLoad (functions) {
    hrtime = functions.hrtime
    nextTick = functions.nextTick
  },
  /** `process.nextTick`, as it was when the entry was loaded. */
  nextTick: (callback, argument) => nextTick(callback, argument),
  /** Returns the milliseconds of a monotonic clock. */
  now () {
    // Not by destructuring, which would use the iterator of the arrays' prototype.
    const time = hrtime()
    return time[0] * 1e3 + time[1] / 1e6
  },

  // Of typed arrays and their buffers, of any realm. No property of theirs can mislead these functions.
  /** https://tc39.es/ecma262/#sec-issharedarraybuffer */
  IsSharedArrayBuffer (buffer) {
    try {
      sharedByteLengthOf(buffer)
      return true
    } catch (_) {
      return false
    }
  },
  /** https://tc39.es/ecma262/#sec-typedarraylength */
  TypedArrayLength: reader(TypedArrayPrototype, 'length'),
  bufferOf: reader(TypedArrayPrototype, 'buffer'),
  byteOffsetOf: reader(TypedArrayPrototype, 'byteOffset'),
  fill: TypedArrayPrototype.fill,
  isGrowable: reader(SharedArrayBuffer.prototype, 'growable') || (() => false),
  /**
   * Whether a SharedArrayBuffer is the memory of a WebAssembly module. The JavaScript API of WebAssembly says that
   * such a buffer is frozen. In another thread the buffer is frozen if its memory was posted, and not if the
   * buffer was posted alone.
   */
  isWebAssemblyMemory: isFrozen,
  /** The length that a SharedArrayBuffer may grow to. */
  maxByteLengthOf: reader(SharedArrayBuffer.prototype, 'maxByteLength') || sharedByteLengthOf,
  nameOf: reader(TypedArrayPrototype, Symbol.toStringTag),
  sharedByteLengthOf,
  values: TypedArrayPrototype.values,

  /** Makes the instances of a class inherit nothing but its own methods. */
  bare (Class) {
    setPrototypeOf(Class.prototype, null)
  },

  /**
   * Shields these properties of a class from setters of `Object.prototype`. So instances can get them by assignment.
   */
  shield (Class, keys) {
    for (let n = 0; n < keys.length; n++) define(Class.prototype, keys[n], undefined, false, true)
  },

  /** Makes an array without a prototype, filled with undefined. */
  createArray (length) {
    const array = new Array(length)
    setPrototypeOf(array, null)
    for (let n = 0; n < length; n++) array[n] = undefined
    return array
  },

  createFinalizationRegistry: maker(REGISTRIES_HANG ? undefined : FinalizationRegistry, ['register']),
  createMap: maker(Map, ['delete', 'forEach', 'get', 'has', 'set']),
  createWeakMap: maker(WeakMap, ['delete', 'get', 'has', 'set']),
  createWeakRef: maker(WeakRef, ['deref']),
  createWeakSet: maker(WeakSet, ['add', 'has'])
}
