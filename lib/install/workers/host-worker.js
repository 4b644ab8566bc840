'use strict'

/** Node's own Worker class, behind the wrappers and subclasses that may stand in its place; and such wrappers. */

const EventEmitter = require('events')
const { MARK } = require('../../host')
const { isObject } = require('../../util/values')
const { threads } = require('../../util/worker-threads')

const { get, getPrototypeOf, setPrototypeOf } = Reflect

/** The class that an install, of whatever copy of the package, has wrapped: in Bun and Deno (by-wrapping.js). */
function unwrap (Class) {
  return Class[MARK] || Class
}

/**
 * The class that extends EventEmitter, or what installs have put in between. It is searched among the parents of the exported class. The export
 * may also be a function around the class: so it is searched among the parents of its prototypes' constructors, too. Undefined: none.
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

/** A proxy of a class, known to `unwrap`, whose instances `construct` makes. A class that inherits from it is not known. */
function wrap (Class, construct) {
  const Wrapped = new Proxy(Class, {
    __proto__: null,
    construct,
    get: (target, key, receiver) => key === MARK && receiver === Wrapped ? Class : get(target, key, receiver)
  })
  return Wrapped
}

/**
 * Puts a wrapper of its parent between Node's class and its parent. So each worker is noticed, also one of a subclass or of a reference
 * to the class that is older than the install.
 *
 * @returns {(() => void) | undefined} undoes it, unless other code has replaced it since. Undefined: the class is not extensible
 */
function interpose (HostWorker, construct) {
  const before = getPrototypeOf(HostWorker)
  const Between = wrap(unwrap(before), construct)
  if (!setPrototypeOf(HostWorker, Between)) return undefined
  return () => {
    if (getPrototypeOf(HostWorker) === Between) setPrototypeOf(HostWorker, before)
  }
}

/** Whether an install, of whatever copy of the package, stands between Node's class and its parent. */
const isInterposed = (HostWorker) => getPrototypeOf(HostWorker)[MARK] !== undefined

module.exports = { hostWorker, interpose, isInterposed, unwrap, wrap }
