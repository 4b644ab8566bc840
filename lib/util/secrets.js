'use strict'

/**
 * Secrets: internal objects of instances, which other code cannot reach.
 *
 * An instance has a function that puts its secret into an object of this module. If other code calls that function, it
 * sees nothing; if it replaces it, it can at worst show the secret of another instance that it knows.
 */

const { isObject } = require('./values')

/**
 * To define a property takes half a microsecond more. A setter of `Object.prototype` would get no more than everybody
 * can read from any instance.
 */
const assign = (instance, key, value) => { instance[key] = value }

/**
 * Makes a kind of secret.
 *
 * - `KEY`: the property of the instances that have one
 * - `hide(instance, secret)`: gives an instance its secret
 * - `reveal(instance)`: returns the secret; undefined if there is none
 *
 * @param {(instance: object, key: symbol, value: Function) => void} [put] puts a property into an instance
 */
module.exports = function createSecrets (description, put = assign) {
  const KEY = Symbol(description)
  // A property, because V8 14.6 (Node 26) reads a stale value of a variable that an inlined function has assigned.
  const shown = { secret: undefined }
  return {
    KEY,
    hide (instance, secret) {
      put(instance, KEY, () => { shown.secret = secret })
    },
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
