'use strict'

/**
 * The memories in which this thread has made locks. Each is kept until the native clean-up hook has run.
 *
 * The native side is told of them, and when their buffer objects have been collected, so that what dead threads have left behind is
 * forgotten together with its memory (src/lock/memories.rs has the rules).
 *
 * A FinalizationRegistry reports a collected object; where there is none, all objects are looked through now and then, when locks
 * are made on other objects. Where there is no WeakRef (before Node 14.6), objects count until their thread ends.
 */

const { setImmediate } = require('timers')

const { createArray, createFinalizationRegistry, createMap, createWeakRef, createWeakSet, max } = require('../../util/intrinsics')
const NODE_VERSION = require('../../util/node-version')
const { maxByteLength } = require('../../util/typed-arrays')
const { threads } = require('../../util/worker-threads')

/** Without a registry: how many objects there are before they are looked through for the first time. */
const MANY = 64

/**
 * Keeps a memory until the native clean-up hook has run. Only needed before Node 14.
 *
 * In these versions, shared memory that has been sent to another thread belongs to all threads that have it. Each thread releases it in a
 * clean-up hook of its environment, which is added when the memory is first sent or received, and hooks run last-in first-out. So
 * a thread that ends might release the memory before the native hook hands over the locks in it.
 *
 * The remedy: the memory is sent (to no receiver), which adds its hook now, and then the native hook is added again. Since Node 14
 * the memory belongs to its buffer, which lives longer than all hooks.
 */
function createKeep (binding) {
  if (threads === undefined || NODE_VERSION >= 14) return () => {}
  const { MessageChannel } = threads
  const kept = createWeakSet()

  return function keep (buffer) {
    if (kept.has(buffer)) return
    const { port1 } = new MessageChannel()
    port1.postMessage(buffer)
    port1.close()
    binding.endFirst()
    kept.add(buffer)
  }
}

function createRegister (binding) {
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

module.exports = { createKeep, createRegister }
