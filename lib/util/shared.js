'use strict'

/**
 * Returns state that all copies of the package in this thread share. Copies in other realms share it, too. It is a
 * property of a class of Node's, since a test runner gives each realm a `process` and globals of its own.
 *
 * Such state lives as long as the thread, and so does all that it refers to. So it keeps the realm that has made it,
 * but no other one: later realms put in primitive values, weak references, or objects that Node itself keeps already.
 */

const EventEmitter = require('events')

// In a Worker this file comes before util/intrinsics.js, whose code it helps to find.
// eslint-disable-next-line no-restricted-syntax -- as above
const { defineProperty, getOwnPropertyDescriptor } = Reflect

module.exports = function shared (name, create) {
  const key = Symbol.for('atomics-waitasync.' + name)
  const property = getOwnPropertyDescriptor(EventEmitter, key)
  if (property !== undefined) return property.value
  const value = create()
  // If the class is frozen, each copy has its own.
  defineProperty(EventEmitter, key, { __proto__: null, value })
  return value
}
