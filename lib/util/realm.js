'use strict'

/**
 * Realms: the built-ins of each, and the host's functions there. `vm` contexts and test runners make new
 * realms; a thread may have many.
 */

const { globalObject } = require('./quirks')
const { define, freeze } = require('./intrinsics')
const { describe, isObject } = require('./values')

/**
 * The key of a mark. Every function that the package installs has one: its engine, and the host's functions that it
 * replaced. All copies of the package share the key: so each recognises the functions of the others, and does not take
 * them for the host's.
 */
const MARK = Symbol.for('atomics-waitasync')

/** `wake` is the former name of `notify`; Node 10 has both. */
const NAMES = ['wait', 'notify', 'waitAsync', 'wake']

/**
 * @typedef {object} Mark
 * @property {'addon' | 'host'} engine the queue that the function uses: the package's own, or the host's
 * @property {{ wait?: Function, notify?: Function, waitAsync?: Function, wake?: Function }} host
 * @property {(promise: Promise, refed: boolean) => boolean} [setRefed] for a `waitAsync` on the host's queue: lets a
 *   promise of that copy of the package hold the event loop, or not
 * @property {Function} [exported] the function that entries export in place of this `waitAsync`: see atomics/signals.js
 *   and atomics/host-queue.js
 */

/** Reads the mark of a function; undefined for one that the package did not make. */
function markOf (fn) {
  if (typeof fn !== 'function') return undefined
  const property = Object.getOwnPropertyDescriptor(fn, MARK)
  return property === undefined ? undefined : property.value
}

/** Marks a function. `more`: the other properties of its mark. */
function mark (fn, engine, host, more) {
  define(fn, MARK, freeze(Object.assign({ engine, host }, more)))
  return fn
}

/** Returns the function that entries export for an installed `fn`. Undefined for a function of the host. */
function exportedOf (fn) {
  const known = markOf(fn)
  return known && (known.exported || fn)
}

/** Returns the host's functions behind those of an Atomics object. Undefined where the host has none. */
function hostOf (atomics) {
  const host = {}
  for (const name of NAMES) {
    const fn = atomics[name]
    const known = markOf(fn)
    host[name] = known === undefined ? fn : known.host[name]
  }
  return Object.freeze(host)
}

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

module.exports = { MARK, contextTarget, exportedOf, mark, markOf, own, resolveTarget }
