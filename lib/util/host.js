'use strict'

/**
 * Distinguishes the host's own functions from this package's.
 *
 * Every function that the package installs carries a mark: its engine, and the host's functions that it replaced.
 * All copies of the package share the mark's key, so that each recognises the functions of the others and does not
 * take them for the host's.
 */

const { define, freeze } = require('./intrinsics')

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
 *   and atomics/keep-alive.js
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

module.exports = { MARK, exportedOf, hostOf, mark, markOf }
