'use strict'

/** Node's own Worker class, behind wrappers and subclasses; and such wrappers. */

const EventEmitter = require('events')
const { MARK } = require('../../util/host')
const { isObject } = require('../../util/values')
const { threads } = require('../../util/worker-threads')

const { get, getPrototypeOf, setPrototypeOf } = Reflect

/** Returns the class that an install of any copy has wrapped. Installs wrap in Bun and Deno (by-wrapping.js). */
function unwrap (Class) {
  return Class[MARK] || Class
}

/**
 * Finds Node's class, which extends EventEmitter, or an install's wrapper of it. It is searched among the parents of
 * the exported class. The export may also be a function around the class: so it is searched among the parents of its
 * prototypes' constructors, too. Undefined: none.
 */
function hostWorker () {
  if (threads === undefined) return undefined
  const { Worker } = threads
  let found = amongParents(Worker)
  let prototype = typeof Worker === 'function' ? Worker.prototype : undefined
  while (found === undefined && isObject(prototype)) {
    found = amongParents(prototype.constructor)
    prototype = getPrototypeOf(prototype)
  }
  return found
}

function amongParents (Class) {
  for (let each = Class; typeof each === 'function'; each = getPrototypeOf(each)) {
    const Parent = getPrototypeOf(each)
    if (Parent !== null && unwrap(Parent) === EventEmitter) return unwrap(each)
  }
  return undefined
}

/**
 * Makes a proxy of a class, known to `unwrap`, with another `construct`. A class that inherits from it is not known.
 */
function wrap (Class, construct) {
  const Wrapped = new Proxy(Class, {
    __proto__: null,
    construct,
    get: (target, key, receiver) => key === MARK && receiver === Wrapped ? Class : get(target, key, receiver)
  })
  return Wrapped
}

/**
 * Puts a wrapper of its parent between Node's class and the parent. So each worker is noticed, also one of a subclass
 * or of a reference to the class that is older than the install.
 *
 * @returns {(() => void) | undefined} undoes it, unless other code has replaced it since. Undefined: the
 *   class is not extensible
 */
function interpose (HostWorker, construct) {
  const before = getPrototypeOf(HostWorker)
  const Between = wrap(unwrap(before), construct)
  if (!setPrototypeOf(HostWorker, Between)) return undefined
  return () => {
    if (getPrototypeOf(HostWorker) === Between) setPrototypeOf(HostWorker, before)
  }
}

/** Whether an install of any copy stands behind Node's class. */
const isInterposed = (HostWorker) => getPrototypeOf(HostWorker)[MARK] !== undefined

module.exports = { hostWorker, interpose, isInterposed, unwrap, wrap }
