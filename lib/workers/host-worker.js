'use strict'

/** Node's own Worker class, behind the subclasses that may stand in its place. */

const EventEmitter = require('events')
const { MARK } = require('../host')
const { threads } = require('../util/worker-threads')

/** The class that extends EventEmitter, or what installs have put in between. Undefined where there is none. */
function hostWorker () {
  let each = threads === undefined ? undefined : threads.Worker
  while (typeof each === 'function') {
    const Parent = Object.getPrototypeOf(each)
    if (Parent !== null && (Parent[MARK] || Parent) === EventEmitter) return each
    each = Parent
  }
  return undefined
}

module.exports = { hostWorker }
