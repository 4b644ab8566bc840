'use strict'

/**
 * The errors of the Web Locks API: a `DOMException`, where the Node has it; otherwise an `Error` with that name.
 *
 * Node has it since version 10, and as a global since 17. Before, it is the class of the error that a MessagePort
 * throws.
 */

const globalObject = require('../util/global')
const { Error, define } = require('../util/intrinsics')
const workerThreads = require('../util/worker-threads')

/** The class; null where there is none. Undefined until it is needed. */
let DOMException

function find () {
  if (typeof globalObject.DOMException === 'function') return globalObject.DOMException
  const { threads } = workerThreads
  if (threads === undefined) return null
  const { port1 } = new threads.MessageChannel()
  try {
    port1.postMessage(Symbol('a symbol cannot be cloned'))
  } catch ({ constructor }) {
    if (constructor.name === 'DOMException') return constructor
  } finally {
    port1.close()
  }
  return null
}

/** @param {'AbortError' | 'NotSupportedError'} name */
exports.createException = function createException (name, message) {
  if (DOMException === undefined) DOMException = find()
  if (DOMException !== null) return new DOMException(message, name)
  const error = new Error(message)
  define(error, 'name', name, true, true)
  return error
}
