'use strict'

/**
 * Gives state that all copies of the package in this thread share, also copies in other realms. It is a property of a class of
 * Node's, since a test runner gives each realm a `process` and globals of its own.
 *
 * Such state lives as long as the thread, and so does all that it refers to. So it keeps the realm that has made it, but no other one:
 * later realms put primitive values into it, weak references, or what Node itself keeps already.
 */

const EventEmitter = require('events')

const { define, getOwnPropertyDescriptor } = require('./intrinsics')

/** The state of that name; `create` makes it if this is the first copy that asks. */
module.exports = function shared (name, create) {
  const key = Symbol.for('atomics-waitasync.' + name)
  const property = getOwnPropertyDescriptor(EventEmitter, key)
  if (property !== undefined) return property.value
  const value = create()
  // If the class is frozen, each copy has its own.
  define(EventEmitter, key, value)
  return value
}
