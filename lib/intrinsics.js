'use strict'

/**
 * Built-ins as they were when the package was loaded, and collections that no later change of a prototype reaches.
 *
 * Any code in the thread can replace a global or patch a prototype. It must not get hold of an object that the package keeps to
 * itself, since some of these have addresses of memory in them. So the code that handles such objects follows four rules:
 * - It takes built-ins from here.
 * - It calls no method of a built-in's prototype on an object of the package's own: a patched method would be given that object.
 *   The collections that are made here have the methods themselves.
 * - No prototype stands behind the arrays and the instances that it fills (`createArray`, `bare`), or one that has these properties
 *   (`shield`): an assignment to a property that does not exist yet would call a setter there.
 * - It writes property descriptors by `define`, for what `Object.prototype` has would count as the descriptor's own.
 */

// BigInt, BigInt64Array and FinalizationRegistry do not exist on every Node.
const {
  Array, ArrayBuffer, BigInt, BigInt64Array, Error, FinalizationRegistry, Float64Array, Int32Array, Map, Promise, RangeError,
  SharedArrayBuffer, String, TypeError, WeakMap
} = require('./global')
const { add, compareExchange, load, store, sub } = Atomics
const { clz32, imul, max, min, trunc } = Math
const { isInteger } = Number
const { freeze, is, keys } = Object
const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect
const { stringify } = JSON
const { hrtime } = process

const TypedArrayPrototype = getPrototypeOf(Int32Array.prototype)
const getter = (object, key) => getOwnPropertyDescriptor(object, key).get

/** Defines a property. Without more arguments, one that nobody sees by chance and nobody can change. */
function define (object, key, value, enumerable = false, writable = false) {
  return defineProperty(object, key, { __proto__: null, value, enumerable, writable, configurable: writable })
}

/** Gives a collection the methods that its prototype has now. */
function withMethods (prototype, names) {
  const methods = names.map((name) => [name, prototype[name]])
  return (collection) => {
    for (let n = 0; n < methods.length; n++) define(collection, methods[n][0], methods[n][1])
    return collection
  }
}
const ofMap = withMethods(Map.prototype, ['delete', 'forEach', 'get', 'has', 'set'])
const ofWeakMap = withMethods(WeakMap.prototype, ['delete', 'get', 'has', 'set'])
const ofRegistry = FinalizationRegistry && withMethods(FinalizationRegistry.prototype, ['register'])
const getMapSize = getter(Map.prototype, 'size')

module.exports = {
  ArrayBuffer,
  BigInt64Array,
  Error,
  Float64Array,
  Int32Array,
  Promise,
  RangeError,
  SharedArrayBuffer,
  String,
  TypeError,
  add,
  apply,
  asIntN: BigInt && BigInt.asIntN,
  clz32,
  compareExchange,
  define,
  freeze,
  getOwnPropertyDescriptor,
  hrtime,
  imul,
  is,
  isInteger,
  keys,
  load,
  max,
  min,
  store,
  stringify,
  sub,
  trunc,

  // Of typed arrays and their buffers.
  getBuffer: getter(TypedArrayPrototype, 'buffer'),
  getByteOffset: getter(TypedArrayPrototype, 'byteOffset'),
  getLength: getter(TypedArrayPrototype, 'length'),
  getName: getter(TypedArrayPrototype, Symbol.toStringTag),
  getSharedByteLength: getter(SharedArrayBuffer.prototype, 'byteLength'),
  /** Undefined where buffers do not grow. */
  getGrowable: (getOwnPropertyDescriptor(SharedArrayBuffer.prototype, 'growable') || {}).get,
  getMaxByteLength: (getOwnPropertyDescriptor(SharedArrayBuffer.prototype, 'maxByteLength') || {}).get,
  values: TypedArrayPrototype.values,

  /** A class whose instances inherit nothing but its own methods. Gives the class. */
  bare (Class) {
    setPrototypeOf(Class.prototype, null)
    return Class
  },

  /** Lets instances of a class be given these properties by assignments, whatever setters there may be on the prototype of all objects. */
  shield (Class, keys) {
    for (let n = 0; n < keys.length; n++) define(Class.prototype, keys[n], undefined, false, true)
  },

  /** An array without a prototype, of that many elements that are undefined. */
  createArray (length) {
    const array = new Array(length)
    setPrototypeOf(array, null)
    for (let n = 0; n < length; n++) array[n] = undefined
    return array
  },

  /** Not on every Node. */
  createFinalizationRegistry: (callback) => ofRegistry(new FinalizationRegistry(callback)),
  createMap: () => ofMap(new Map()),
  createWeakMap: () => ofWeakMap(new WeakMap()),
  sizeOf: (map) => apply(getMapSize, map, [])
}
