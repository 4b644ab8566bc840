'use strict'

/** Node's own Worker class, behind the wrappers and subclasses that may stand in its place. */

const EventEmitter = require('events')
const { MARK } = require('../host')
const { threads } = require('../util/worker-threads')

/** The class that an install, of whatever copy of the package, has wrapped: in Bun and Deno (by-wrapping.js). */
function unwrap (Class) {
  return Class[MARK] || Class
}

/** The class that extends EventEmitter, or what installs have put in between. Undefined where there is none. */
function hostWorker () {
  let each = threads === undefined ? undefined : threads.Worker
  while (typeof each === 'function') {
    const Parent = Object.getPrototypeOf(each)
    if (Parent !== null && unwrap(Parent) === EventEmitter) return unwrap(each)
    each = Parent
  }
  return undefined
}

module.exports = { hostWorker, unwrap }
