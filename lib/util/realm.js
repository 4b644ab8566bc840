'use strict'

/**
 * Realms: the built-ins of each, and the host's functions there. `vm` contexts and test runners make new
 * realms; a thread may have many.
 */

const { hostOf } = require('./host')
const globalObject = require('./global')
const { describe, isObject } = require('./values')

/** The realm that this module is evaluated in. */
const own = Object.freeze({ Atomics, TypeError, RangeError, Promise, host: hostOf(Atomics) })

/** Realms by their Atomics object. */
const realms = new WeakMap([[Atomics, own]])

/**
 * Finds the object that receives an install's functions, and their realm.
 *
 * A target is, in this order, an Atomics object (by its toStringTag), a global object (it has an Atomics object), or
 * any other object, which receives the functions itself. A sandbox made by `vm.createContext` counts as its
 * context's global object.
 *
 * @returns {{ holder: object, realm: object, plain: boolean }} `plain`: the holder is no Atomics object
 * @throws {TypeError} target is not an object; `caller` is named in the message
 */
function resolveTarget (target, caller) {
  if (target === undefined) target = globalObject
  if (!isObject(target)) {
    throw new TypeError(caller + ': target must be a global object, an Atomics object or another object, not ' +
      describe(target))
  }
  if (typeof target === 'object' && target !== globalObject) target = globalOf(target)
  if (target[Symbol.toStringTag] === 'Atomics') return { holder: target, realm: realmOf(target), plain: false }
  const holder = target.Atomics
  if (isObject(holder)) return { holder, realm: realmOf(holder, target), plain: false }
  return { holder: target, realm: own, plain: true }
}

/** Returns the global object of a sandbox's context; any other object unchanged. */
function globalOf (object) {
  // Required here: it takes 0.1 ms to load, and most installs have no target.
  const vm = require('vm')
  return vm.isContext(object) ? vm.runInContext('this', object) : object
}

/**
 * Resolves the global object of a new context, as `resolveTarget`. Undefined if there is no Atomics object: a sandbox
 * may hide that of its context.
 */
function contextTarget (global) {
  const holder = global.Atomics
  if (!isObject(holder) || holder[Symbol.toStringTag] !== 'Atomics') return undefined
  return { holder, realm: realmOf(holder, global), plain: false }
}

/** `global`: the Atomics object's global object, if it is known. */
function realmOf (atomics, global) {
  let realm = realms.get(atomics)
  if (realm === undefined) {
    const { TypeError, RangeError, Promise } = intrinsicsOf(global) || intrinsicsOf(globalBehind(atomics)) || own
    // A test may use an Atomics object with only some of the functions.
    const load = typeof atomics.load === 'function' ? atomics.load : Atomics.load
    realm = Object.freeze({ Atomics: { load }, TypeError, RangeError, Promise, host: hostOf(atomics) })
    realms.set(atomics, realm)
  }
  return realm
}

function intrinsicsOf (global) {
  if (!isObject(global)) return undefined
  const { TypeError, RangeError, Promise } = global
  const complete = [TypeError, RangeError, Promise].every((intrinsic) => typeof intrinsic === 'function')
  return complete ? { TypeError, RangeError, Promise } : undefined
}

/** Returns the global object behind an Atomics object's functions. */
function globalBehind (atomics) {
  try {
    return atomics.load.constructor('return this')()
  } catch (_) {
    // A context may forbid code from strings.
    return undefined
  }
}

module.exports = { contextTarget, own, resolveTarget }
