'use strict'

/**
 * Reports to the native side in which memories this thread has made locks, and when their buffer objects have been collected, so
 * that what dead threads have left behind is forgotten together with its memory (src/lock/memories.rs has the rules).
 *
 * A FinalizationRegistry reports a collected object; where there is none, all objects are looked through now and then, when locks
 * are made on other objects. Where there is no WeakRef (before Node 14.6), objects count until their thread ends.
 */

const { setImmediate } = require('timers')

const { createArray, createFinalizationRegistry, createMap, createWeakRef, createWeakSet, max } = require('../../util/intrinsics')
const { maxByteLength } = require('../../util/typed-arrays')

/** Without a registry: how many objects there are before they are looked through for the first time. */
const MANY = 64

module.exports = function createMemories (binding) {
  if (createWeakRef === undefined) {
    const registered = createWeakSet()
    return function register (buffer, base) {
      if (registered.has(buffer)) return
      binding.registerMemory(base, maxByteLength(buffer))
      registered.add(buffer)
    }
  }
  // By the address of its memory, the object that this thread registered last, until it has been collected.
  const latest = createMap()
  // The objects that were the latest before another object of the same memory came. Most memories have only one object.
  const earlier = createWeakSet()
  const collected = createFinalizationRegistry && createFinalizationRegistry(lose)
  // Without a registry: all objects, and how many there may be before they are looked through.
  let all = createArray(0)
  let many = MANY
  let isToLook = false

  function look () {
    isToLook = false
    binding.lookAtMemories()
  }

  function lose (registration) {
    if (registration.lost) return
    registration.lost = true
    const { base } = registration
    if (latest.get(base) === registration) latest.delete(base)
    // Memory is freed a little later than its objects are collected. One look is enough for all that are collected together.
    if (binding.loseMemory(base) && !isToLook) {
      isToLook = true
      setImmediate(look)
    }
  }

  function watch (registration, buffer) {
    if (collected !== undefined) {
      collected.register(buffer, registration)
      return
    }
    if (all.length >= many) {
      const left = createArray(0)
      for (let n = 0; n < all.length; n++) {
        if (all[n].ref.deref() === undefined) lose(all[n])
        else left[left.length] = all[n]
      }
      all = left
      many = max(MANY, 2 * left.length)
    }
    all[all.length] = registration
  }

  /** A lock is made on a SharedArrayBuffer whose memory begins at the address `base`. */
  return function register (buffer, base) {
    const former = latest.get(base)
    const object = former === undefined ? undefined : former.ref.deref()
    if (object === buffer || earlier.has(buffer)) return
    if (object !== undefined) earlier.add(object)
    // If there is another memory at this address now, the native side learns so before the first lock in it is taken.
    else if (former !== undefined) lose(former)
    // Near the end of the stack any of these calls may throw: then the object is registered anew next time. It cannot be lost
    // until the native side counts it.
    const registration = { base, ref: createWeakRef(buffer), lost: true }
    watch(registration, buffer)
    binding.registerMemory(base, maxByteLength(buffer))
    registration.lost = false
    latest.set(base, registration)
  }
}
