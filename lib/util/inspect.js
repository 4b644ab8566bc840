'use strict'

/** Lets `util.inspect` show the instances of a class by their state. */

const util = require('util')
const { define } = require('./intrinsics')
const { INSPECT_ABORTS } = require('./quirks')

/**
 * @param {Function} Class
 * @param {(instance: object) => object} stateOf throws for an object without state: a prototype, or an object that only
 *   inherits from one. That is shown as any other object
 */
module.exports = function showState (Class, stateOf) {
  define(Class.prototype, util.inspect.custom, function inspect (depth, options) {
    try {
      return this.constructor.name + ' ' + util.inspect(stateOf(this), options)
    } catch (_) {
      if (INSPECT_ABORTS && util.types.isProxy(this)) return '[Proxy]'
      return util.inspect(this, Object.assign({}, options, { customInspect: false }))
    }
  }, false, true)
}
