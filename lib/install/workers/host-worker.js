'use strict'

/** Node's own Worker class, behind wrappers and subclasses; and such wrappers. */

const EventEmitter = require('events')
const { LATE_HOOKS } = require('../../util/quirks')
const { MARK } = require('../../util/realm')
const { isObject } = require('../../util/values')
const { shared, threads } = require('../../util/worker-threads')

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

/** Whether any copy of the package in this thread has done it. */
const loaderThread = shared('loader-thread', () => ({ done: !LATE_HOOKS }))

/**
 * Lets Node's module loader use the host's Atomics after an install. The thread in which its hooks run does so, too.
 *
 * Node 18.19 to 21 take `Atomics.wait` from the global object when hooks are first needed. If they took the package's,
 * the thread would block in its queue for ever: the hooks' thread notifies the host's queue. So Node is made to take
 * its functions before an install: by registering a hook, and stopping Node at its next step, which is to start that
 * thread. Later versions have taken their functions long before.
 */
function takeHostFunctions () {
  if (loaderThread.done) return
  loaderThread.done = true
  const Module = require('module')
  const HostWorker = hostWorker()
  if (HostWorker === undefined || typeof Module.register !== 'function') return
  const stop = new Error('enough')
  const Parent = getPrototypeOf(HostWorker)
  setPrototypeOf(HostWorker, function () { throw stop })
  try {
    // If there are hooks already, Node has taken its functions, and converts this argument next.
    Module.register({ toString () { throw stop } })
  } catch (_) {
    // `stop`; or `register` has refused. A test runner's sandbox has a `register` of its own that always does. The
    // Atomics to be replaced are then those of the sandbox's realm, and Node's loader takes those of the main realm. If
    // it is Node's own that refuses, no hooks can be registered in this thread later either.
  } finally {
    setPrototypeOf(HostWorker, Parent)
  }
}

module.exports = { hostWorker, interpose, isInterposed, takeHostFunctions, unwrap, wrap }
