'use strict'

/**
 * Finds out the name that a program gives a Worker, for reports and dumps, on a Node whose threads do not know their names.
 *
 * Node's constructor keeps its options to itself. But it reads an option from them that hardly any program gives: so until it does,
 * `Object.prototype` has a getter, which is called on the options. That is only where the environment asks for reports or dumps, and no code
 * of the program's runs meanwhile but getters of the options.
 */

const { defineProperty, getOwnPropertyDescriptor } = require('../../../util/intrinsics')
const isAsked = require('../../../util/is-asked')
const { NO_TRACKED_FDS } = require('../../../util/quirks')
const { isObject } = require('../../../util/values')
const { threads } = require('../../../util/worker-threads')

const { prototype } = Object
const { deleteProperty } = Reflect

/** The constructor reads it before it posts the message that starts the Worker. */
const OPTION = NO_TRACKED_FDS ? 'stdin' : 'trackUnmanagedFds'

let getter
let name

/** A Worker's constructor is about to read its options. */
exports.expect = function expect () {
  forget()
  if (threads.threadName !== undefined || !isAsked() || getOwnPropertyDescriptor(prototype, OPTION) !== undefined) return
  getter = function () {
    forget()
    name = nameIn(this)
  }
  defineProperty(prototype, OPTION, { get: getter, set: replace, configurable: true })
}

/** The name that it has read, once; undefined if there is none. */
exports.take = function take () {
  const taken = name
  forget()
  return taken
}

/** The getter goes, unless it was replaced, and so does what it has found. */
function forget () {
  name = undefined
  const property = getter && getOwnPropertyDescriptor(prototype, OPTION)
  if (property !== undefined && property.get === getter) deleteProperty(prototype, OPTION)
  getter = undefined
}
exports.forget = forget

/** An assignment gives its object the property, as without the getter. */
function replace (value) {
  defineProperty(this, OPTION, { value, writable: true, enumerable: true, configurable: true })
}

/** Of a property with a getter, it was asked once already. */
function nameIn (options) {
  const property = isObject(options) ? getOwnPropertyDescriptor(options, 'name') : undefined
  return property !== undefined && typeof property.value === 'string' && property.value !== '' ? property.value : undefined
}
