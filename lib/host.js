'use strict'

/**
 * Which functions are the host's own, also where this package already stands in their place.
 *
 * Every function that the package puts anywhere carries a mark: what it is, and the host's functions that it replaced.
 * The mark's key is shared by all copies of the package, so that each recognises what another has installed, and none
 * takes another's function for the host's.
 */

const MARK = Symbol.for('atomics-waitasync')

/** `wake` is what `notify` was called before; Node 10 has both. */
const NAMES = ['wait', 'notify', 'waitAsync', 'wake']

/**
 * @typedef {object} Mark
 * @property {'addon' | 'host'} engine the queue that the function works on: the package's own, or the host's
 * @property {{ wait?: Function, notify?: Function, waitAsync?: Function, wake?: Function }} host
 */

/** The mark of a function, undefined if this package did not make it. */
function markOf (fn) {
  if (typeof fn !== 'function') return undefined
  const property = Object.getOwnPropertyDescriptor(fn, MARK)
  return property === undefined ? undefined : property.value
}

/** Marks a function, once and for good. */
function mark (fn, engine, host) {
  Object.defineProperty(fn, MARK, { value: Object.freeze({ engine, host }) })
  return fn
}

/** The host's functions behind what an object has now; undefined where it has none. */
function hostOf (atomics) {
  const host = {}
  for (const name of NAMES) {
    const fn = atomics[name]
    const known = markOf(fn)
    host[name] = known === undefined ? fn : known.host[name]
  }
  return Object.freeze(host)
}

module.exports = { MARK, hostOf, mark, markOf }
