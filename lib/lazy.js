'use strict'

/**
 * Locks and their family: the exports beside the functions of `Atomics`. The code of each is loaded when its name is
 * read, since most programs use one or two. But `import` reads all names at once: so ES modules get classes that load
 * their code at the first use. None of this code loads the native library before it needs it.
 *
 * A lazy class is used when it is called, or when a property is read that it does not have yet. Then it gets the
 * properties of the loaded class, and its prototype those of the loaded class's prototype. That prototype inherits from
 * the late one from then on: so an object that the loaded code constructs by its own name is an instance of both. It
 * keeps its shields: the late one may be frozen at any time.
 *
 * Until then, each inherits from a stand-in that loads the code when it is asked for anything. Spies look for a method
 * along the prototype chain before they replace it, and delete their own from an object that had none. So the target of
 * a stand-in gets the loaded properties, too. It stays in the chain if the stand-in was asked, or if the class was
 * changed or frozen before.
 */

const { apply, createWeakMap, defineProperty } = require('./util/intrinsics')
const { assertStackToLoad } = require('./util/stack')
const { isTimeoutError } = require('./util/values')
const locks = require('./named/manager')

const {
  construct, deleteProperty, get, getOwnPropertyDescriptor, has, ownKeys, preventExtensions, setPrototypeOf
} = Reflect

/** The functions that load lazy classes, and return what is loaded. */
const loaders = createWeakMap()

const constructLazily = (Class, given, newTarget) => construct(loadNow(Class), given, newTarget)
const loadNow = (Class) => loaders.get(Class)()

/**
 * Makes a class late. It is written out, since engines name its instances by its text: its constructor returns
 * `constructLazily(Class, arguments, new.target)`.
 * @param {() => Function} load returns the loaded class; it is called again if it has thrown
 * @param {Function} [made] another lazy class, of which this one's code makes instances: it is loaded with this one
 */
function lazyClass (Class, load, made) {
  let loaded
  let wasLookedInto = false
  /** The targets of the stand-ins. */
  const behind = { Class: Object.create(Function.prototype), prototype: Object.create(Object.prototype) }
  // It is no parent that `util.inspect` should name.
  defineProperty(behind.Class, 'name', { value: '', configurable: true })
  standIn(Class, behind.Class)
  standIn(Class.prototype, behind.prototype)
  // Each step is idempotent, since it may fail at the end of the stack.
  loaders.set(Class, function use () {
    if (loaded !== undefined) return loaded
    assertStackToLoad()
    if (made !== undefined) loadNow(made)
    const Loaded = load()
    const { prototype } = Loaded
    defineProperty(Class, 'length', { value: Loaded.length, configurable: true })
    fill(Loaded, Class, behind.Class, Function.prototype)
    fill(prototype, Class.prototype, behind.prototype, Object.prototype)
    // The package's own instances must find the properties of the class, which other code may replace.
    for (const key of ownKeys(prototype)) if (!isShield(prototype, key)) deleteProperty(prototype, key)
    setPrototypeOf(prototype, Class.prototype)
    loaded = Loaded
    return Loaded
  })

  /** Gives an object the loaded properties, and an inert prototype. */
  function fill (from, object, standsIn, usual) {
    const stays = !copyAll(from, object) || wasLookedInto
    if (stays) copyAll(from, standsIn)
    setPrototypeOf(object, stays ? standsIn : usual)
  }

  /** Puts a stand-in between an object and its prototype. */
  function standIn (object, target) {
    setPrototypeOf(object, new Proxy(target, {
      __proto__: null,
      get: trap(get, true),
      has: trap(has, true),
      getOwnPropertyDescriptor: trap(getOwnPropertyDescriptor),
      ownKeys: trap(ownKeys),
      preventExtensions: trap(preventExtensions)
    }))
  }

  /** Makes a trap that first loads the class; if it `isOfKey`, unless the target has the key. */
  function trap (operation, isOfKey = false) {
    return function (target, key) {
      if (!isOfKey || !has(target, key)) {
        wasLookedInto = true
        loadNow(Class)
      }
      return apply(operation, undefined, arguments)
    }
  }
}

/** Whether a property only lets instances get their own by assignment. */
function isShield (prototype, key) {
  const { value, writable } = getOwnPropertyDescriptor(prototype, key)
  return value === undefined && writable === true
}

/** The properties that every class and prototype has. */
const OF_ALL = { __proto__: null, constructor: true, length: true, name: true, prototype: true }

/** Copies the properties that the class lacks. False if other code had defined some, or lets none be defined. */
function copyAll (from, to) {
  let isComplete = true
  for (const key of ownKeys(from)) {
    const isFree = getOwnPropertyDescriptor(to, key) === undefined &&
      defineProperty(to, key, getOwnPropertyDescriptor(from, key))
    isComplete = isComplete && (isFree || key in OF_ALL)
  }
  return isComplete
}

class AsyncLock { constructor () { return constructLazily(AsyncLock, arguments, new.target) } }
class Barrier { constructor () { return constructLazily(Barrier, arguments, new.target) } }
class Condition { constructor () { return constructLazily(Condition, arguments, new.target) } }
class Latch { constructor () { return constructLazily(Latch, arguments, new.target) } }
class Lock { constructor () { return constructLazily(Lock, arguments, new.target) } }
class LockManager { constructor () { return constructLazily(LockManager, arguments, new.target) } }
class Queue { constructor () { return constructLazily(Queue, arguments, new.target) } }
class RwLock { constructor () { return constructLazily(RwLock, arguments, new.target) } }
class Semaphore { constructor () { return constructLazily(Semaphore, arguments, new.target) } }
class UnlockToken { constructor () { return constructLazily(UnlockToken, arguments, new.target) } }

lazyClass(Lock, () => require('./named/lock-manager').lockOf(Lock.prototype))
lazyClass(LockManager, () => require('./named/lock-manager').LockManager, Lock)
lazyClass(UnlockToken, () => require('./holding/hold').UnlockToken)
lazyClass(AsyncLock, () => require('./locks/async-lock'), UnlockToken)
lazyClass(Barrier, () => require('./locks/barrier').Barrier)
lazyClass(Condition, () => require('./locks/condition'))
lazyClass(Latch, () => require('./locks/barrier').Latch)
lazyClass(Queue, () => require('./queue'))
lazyClass(RwLock, () => require('./locks/rw-lock'), UnlockToken)
lazyClass(Semaphore, () => require('./locks/semaphore'), UnlockToken)
Object.setPrototypeOf(locks, LockManager.prototype)

const ofSnapshots = {
  formatSnapshot: (snapshot) => require('./observe/snapshot').formatSnapshot(snapshot),
  snapshot: () => require('./observe/snapshot').snapshot()
}

const lazy = {
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, Queue, RwLock, Semaphore, UnlockToken, locks, ...ofSnapshots,
  isTimeoutError
}

function load (name) {
  if (ofSnapshots[name] !== undefined) {
    assertStackToLoad()
    require('./observe/snapshot')
  } else if (name !== 'isTimeoutError') {
    loadNow(name === 'locks' ? LockManager : lazy[name])
  }
  return lazy[name]
}

module.exports = { lazy, load, loadNow }
