'use strict'

/**
 * A class whose code is loaded at its first use: when it is called or a property is read that it does not have yet. `import` reads
 * all exports of an entry, so they have to be there without that code.
 *
 * Then the late class gets the properties of the loaded class, and its prototype those of the loaded class's prototype. That prototype
 * inherits from the late one from then on: so what the loaded code constructs by its own name is an instance of both.
 */

const { createWeakMap } = require('./intrinsics')

const { construct, defineProperty, deleteProperty, get, getOwnPropertyDescriptor, has, ownKeys, setPrototypeOf } = Reflect

/** From a late class to what loads it. */
const loaders = createWeakMap()

/**
 * @param {string} name
 * @param {() => Function} load returns the class; it is called again if it has thrown
 * @param {Function} [made] another late class, of which this one's code makes instances: it is loaded with this one
 */
function lateClass (name, load, made) {
  let loaded
  const Unloaded = function () {
    return construct(use(), arguments, new.target)
  }
  const Class = class extends Unloaded {
    // Not by an implicit constructor: older engines pass its arguments by an iterator, which may have been replaced. Nor by `super`: how many
    // there are matters.
    constructor () {
      return construct(use(), arguments, new.target)
    }
  }
  defineProperty(Class, 'name', { value: name, configurable: true })

  /** Each step may be repeated, since it may fail at the end of the stack. */
  function use () {
    if (loaded !== undefined) return loaded
    if (made !== undefined) loadNow(made)
    const Loaded = load()
    const { prototype } = Loaded
    defineProperty(Class, 'length', { value: Loaded.length, configurable: true })
    copyAll(Loaded, Class)
    copyAll(prototype, Class.prototype)
    // The package's own instances must find the properties of the class, which other code may replace.
    for (const key of ownKeys(prototype)) deleteProperty(prototype, key)
    // Its constructor.
    setPrototypeOf(Class, Loaded)
    setPrototypeOf(Class.prototype, Object.prototype)
    setPrototypeOf(prototype, Class.prototype)
    loaded = Loaded
    return loaded
  }

  /** Puts a stand-in for the missing properties between an object and its prototype. */
  const loading = (object, prototype) => setPrototypeOf(object, new Proxy(prototype, {
    get (target, key, receiver) {
      if (has(target, key)) return get(target, key, receiver)
      use()
      return get(receiver, key)
    },
    has (target, key) {
      if (has(target, key)) return true
      use()
      return has(object, key)
    }
  }))
  loading(Class, Unloaded)
  loading(Class.prototype, Object.create(Object.prototype))
  loaders.set(Class, use)
  return Class
}

/** Loads a late class, if it is not loaded yet. */
function loadNow (Class) {
  loaders.get(Class)()
}

/** Copies the properties that the class does not have: other code may have defined some. */
function copyAll (from, to) {
  for (const key of ownKeys(from)) {
    if (getOwnPropertyDescriptor(to, key) === undefined) defineProperty(to, key, getOwnPropertyDescriptor(from, key))
  }
}

module.exports = { lateClass, loadNow }
