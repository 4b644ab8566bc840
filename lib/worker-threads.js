'use strict'

/** Node's `worker_threads`, and what is behind the Worker that stands there now. */

const EventEmitter = require('events')
const { MARK } = require('./host')

/** Undefined on a Node 10 that was started without --experimental-worker. */
let threads
try {
  threads = require('worker_threads')
} catch (_) {
  threads = undefined
}

/** What an install, of whatever copy of the package, has wrapped. */
function unwrap (Class) {
  return Class[MARK] || Class
}

/** Node's own class, also where somebody has put a subclass in its place: the one that extends EventEmitter. */
function hostWorker () {
  let each = threads === undefined ? undefined : threads.Worker
  while (typeof each === 'function') {
    const Parent = Object.getPrototypeOf(each)
    if (Parent !== null && unwrap(Parent) === EventEmitter) return unwrap(each)
    each = Parent
  }
  return undefined
}

module.exports = { hostWorker, threads, unwrap }
