'use strict'

/**
 * Secrets: internal objects of instances, which other code cannot reach; and what `util.inspect` shows of instances.
 *
 * An instance has a function that puts its secret into an object of this module. If other code calls that function, it
 * sees nothing; if it replaces it, it can at worst show the secret of another instance that it knows.
 */

const util = require('util')
const { define } = require('./intrinsics')
const { INSPECT_ABORTS } = require('./quirks')
const { isObject } = require('./values')

/**
 * Makes a kind of secret.
 *
 * - `KEY`: the property of the instances that have one
 * - `hidden(secret)`: returns its value. It may be assigned, since to define a property takes half a microsecond: a
 *   setter of `Object.prototype` would get no more than everybody can read from any instance
 * - `reveal(instance)`: returns the secret; undefined if there is none
 */
function createSecrets (description) {
  const KEY = Symbol(description)
  // A property, because V8 14.6 (Node 26) reads a stale value of a variable that an inlined function has assigned.
  const shown = { secret: undefined }
  return {
    KEY,
    hidden: (secret) => () => { shown.secret = secret },
    reveal (instance) {
      const show = isObject(instance) ? instance[KEY] : undefined
      // Cleared before, since a function that is not ours may show nothing; and after, since it may show another.
      shown.secret = undefined
      if (typeof show === 'function') show()
      const { secret } = shown
      shown.secret = undefined
      return secret
    }
  }
}

/**
 * Lets `util.inspect` show the instances of a class by their state.
 * @param {Function} Class
 * @param {(instance: object) => object} stateOf throws for an object without state: a prototype, or an object that only
 *   inherits from one. That is shown as any other object
 */
function showState (Class, stateOf) {
  define(Class.prototype, util.inspect.custom, function inspect (depth, options) {
    try {
      return this.constructor.name + ' ' + util.inspect(stateOf(this), options)
    } catch (_) {
      if (INSPECT_ABORTS && util.types.isProxy(this)) return '[Proxy]'
      return util.inspect(this, Object.assign({}, options, { customInspect: false }))
    }
  }, false, true)
}

module.exports = { createSecrets, showState }
