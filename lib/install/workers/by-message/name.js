'use strict'

/**
 * Finds out the name of a new Worker, for reports and dumps. It is needed on a Node whose threads
 * do not know their names.
 *
 * Node's constructor keeps its options to itself. But it reads an option from them that hardly any program gives: so
 * until it does, `Object.prototype` has a getter, which is called on the options. That is only where the environment
 * asks for reports or dumps, and no code of the program's runs meanwhile but getters of the options.
 */

const { defineProperty, getOwnPropertyDescriptor } = require('../../../util/intrinsics')
const { NO_TRACKED_FDS } = require('../../../util/quirks')
const { isObject } = require('../../../util/values')
const { isEnabled } = require('../../../util/variables')
const { threads } = require('../../../util/worker-threads')

const { prototype } = Object
const { deleteProperty } = Reflect

/** An option that the constructor reads before it posts its message. */
const OPTION = NO_TRACKED_FDS ? 'stdin' : 'trackUnmanagedFds'

let getter
let name

/** Prepares for a Worker's constructor, which is about to read its options. */
exports.expect = function expect () {
  forget()
  if (threads.threadName !== undefined || !isEnabled()) return
  if (getOwnPropertyDescriptor(prototype, OPTION) !== undefined) return
  getter = function () {
    forget()
    name = nameIn(this)
  }
  defineProperty(prototype, OPTION, { get: getter, set: replace, configurable: true })
}

/** Returns the name, once; undefined if there is none. */
exports.take = function take () {
  const taken = name
  forget()
  return taken
}

/** Removes the getter, unless it was replaced, and forgets the name. */
function forget () {
  name = undefined
  const property = getter && getOwnPropertyDescriptor(prototype, OPTION)
  if (property !== undefined && property.get === getter) deleteProperty(prototype, OPTION)
  getter = undefined
}
exports.forget = forget

/** Defines the property on the assigned object, as without the getter. */
function replace (value) {
  defineProperty(this, OPTION, { value, writable: true, enumerable: true, configurable: true })
}

/** Reads the name in options. Not by a getter, which was called once already. */
function nameIn (options) {
  const property = isObject(options) ? getOwnPropertyDescriptor(options, 'name') : undefined
  const value = property === undefined ? undefined : property.value
  return typeof value === 'string' && value !== '' ? value : undefined
}
