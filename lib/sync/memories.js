'use strict'

/**
 * Tells the native side which memories this thread has made locks in, and when their buffer objects have been collected: so that what
 * dead threads have left behind is forgotten with its memory (src/memories.rs has the rules).
 *
 * Needs WeakRef (Node 14.6). From Node 18 on a FinalizationRegistry says when an object has been collected; up to Node 16 a process
 * hangs when a worker ends that has one. There it is found out when locks are made on other objects.
 *
 * Loaded with lib/settle.js: what a program makes of the built-ins after that makes no difference.
 */

const { maxByteLength } = require('../abstract-operations')
// WeakRef and FinalizationRegistry do not exist on every Node.
const { FinalizationRegistry, Map, WeakRef, WeakSet } = require('../global')

const { max } = Math
const { apply } = Reflect
const { add, has } = WeakSet.prototype
const { get, set, delete: remove } = Map.prototype
const deref = WeakRef && WeakRef.prototype.deref
const Registry = parseInt(process.versions.node) >= 18 ? FinalizationRegistry : undefined
const watch = Registry && Registry.prototype.register

/** How many objects there are, where they have to be looked through, before that is done for the first time. */
const MANY = 64

function createMemories (binding) {
  if (WeakRef === undefined) return () => {}
  // By the address of its memory, the latest object that this thread has registered, until that has been collected.
  const latest = new Map()
  // The objects that were the latest until there was another one of the same memory. Most memories have one only.
  const earlier = new WeakSet()
  const collected = Registry && new Registry(lose)
  // Without a registry: all objects, and how many there may be before they are looked through.
  let all = []
  let many = MANY

  function lose (registration) {
    if (registration.lost) return
    registration.lost = true
    const { base } = registration
    if (apply(get, latest, [base]) === registration) apply(remove, latest, [base])
    binding.loseMemory(base)
  }

  function watchOver (registration, buffer) {
    if (collected !== undefined) {
      apply(watch, collected, [buffer, registration])
      return
    }
    if (all.length >= many) {
      const left = []
      for (let n = 0; n < all.length; n++) {
        if (apply(deref, all[n].ref, []) === undefined) lose(all[n])
        else left[left.length] = all[n]
      }
      all = left
      many = max(MANY, 2 * left.length)
    }
    all[all.length] = registration
  }

  /** A lock is made on a SharedArrayBuffer whose memory begins at the address `base`. */
  return function register (buffer, base) {
    const former = apply(get, latest, [base])
    const object = former === undefined ? undefined : apply(deref, former.ref, [])
    if (object === buffer || apply(has, earlier, [buffer])) return
    if (object !== undefined) apply(add, earlier, [object])
    // If the memory at this address is another one now, that is known before the first lock in it is taken.
    else if (former !== undefined) lose(former)
    // Near the end of the stack any of these calls may throw: then the object is registered anew next time. Until the native side
    // counts it, it cannot be lost.
    const registration = { base, ref: new WeakRef(buffer), lost: true }
    watchOver(registration, buffer)
    binding.registerMemory(base, maxByteLength(buffer))
    registration.lost = false
    apply(set, latest, [base, registration])
  }
}

module.exports = createMemories
