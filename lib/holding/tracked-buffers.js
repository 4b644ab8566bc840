'use strict'

/**
 * The memories in which this thread has made locks. Each is kept until the native clean-up hook has run.
 *
 * Native code is told of them, and of the collection of their buffer objects, so that it forgets abandoned locks
 * together with their memory (core/src/lock/tracked_buffers.rs has the rules).
 *
 * A FinalizationRegistry reports a collected object; where there is none, all objects are looked through, a few
 * at a time, when locks are made on other objects. Where there is no WeakRef (before Node 14.6), objects count
 * until their thread ends.
 */

const timers = require('timers')
const { agent } = require('../agent/find-agent')
const {
  createArray, createFinalizationRegistry, createMap, createWeakRef, createWeakSet, maxByteLengthOf, now
} = require('../util/intrinsics')
const { RELEASES_EARLY } = require('../util/quirks')
const workerThreads = require('../util/worker-threads')

const { binding } = agent().native

/** How many objects are looked at, without a registry. Each lock that is made on another object looks. */
const LOOKED_AT = 2
/** Milliseconds of a turn in which collected objects are reported. */
const TURN = 1

// All objects that native code counts.
const known = createWeakSet()
// By address, the one of each memory that this thread registered last, until it has been collected.
const latest = createMap()
const kept = createWeakSet()
const collected = createFinalizationRegistry && createFinalizationRegistry(lose)
// Without a registry: all objects, and the index of the one that is looked at next.
const all = createArray(0)
let next = 0
// By address, how many objects have been collected of which native code is still to hear; and the addresses.
const lost = createMap()
const losers = createArray(0)
let isToLook = false
// The `setImmediate` that has been called for the next turn.
let scheduledBy

/**
 * Keeps a memory for the native clean-up hook. It is only needed before Node 14.
 *
 * In these versions, shared memory that has been sent to another thread belongs to all threads that have it. Each
 * thread releases it in a clean-up hook of its environment, which is added when the memory is first sent or
 * received, and hooks run last-in first-out. So a thread that ends might release the memory before the native hook
 * hands over the locks in it.
 *
 * The remedy: the memory is sent (to no receiver), which adds its hook now, and then the native hook is added again.
 * Since Node 14 the memory belongs to its buffer, which lives longer than all hooks.
 */
function keep (buffer) {
  if (kept.has(buffer)) return
  const { port1 } = new workerThreads.threads.MessageChannel()
  port1.postMessage(buffer)
  port1.close()
  binding.endFirst()
  kept.add(buffer)
}

/** Registers the buffer of a new lock; its memory is at `base`. */
function register (buffer, base) {
  if (RELEASES_EARLY && workerThreads.threads !== undefined) keep(buffer)
  if (known.has(buffer)) return
  if (createWeakRef === undefined) {
    binding.registerMemory(base, maxByteLengthOf(buffer))
  } else {
    // If there is another memory at this address now, native code learns so before the first lock in it is taken.
    const former = latest.get(base)
    if (former !== undefined && former.ref.deref() === undefined) lose(former)
    reportCollected(base)
    // Near the end of the stack any of these calls may throw: then the object is registered anew next time. It cannot
    // be lost until native code counts it.
    const registration = { base, ref: createWeakRef(buffer), isLost: true }
    watch(registration, buffer)
    binding.registerMemory(base, maxByteLengthOf(buffer))
    registration.isLost = false
    latest.set(base, registration)
  }
  known.add(buffer)
}

/**
 * Has some reported in the next turn. A test may have put a fake `setImmediate` in place, which never calls: so that is
 * forgotten once there is another.
 */
function schedule () {
  const { setImmediate } = timers
  if (scheduledBy === setImmediate) return
  scheduledBy = setImmediate
  try {
    // eslint-disable-next-line own/one-door -- in a turn of its own, or where a lock is made
    setImmediate(reportSome)
  } catch (_) {
    // The next collected object tries again.
    scheduledBy = undefined
  }
}

/** Reports some of the collected objects in each turn. Many objects may be collected together. */
function reportSome () {
  scheduledBy = undefined
  // Memory is freed a little later than its objects are collected. One look is enough for all of a turn.
  if (isToLook) binding.lookAtMemories()
  isToLook = false
  for (const end = now() + TURN; losers.length > 0 && now() < end; losers.length--) {
    reportCollected(losers[losers.length - 1])
  }
  if (isToLook || losers.length > 0) schedule()
}

function reportCollected (base) {
  const objects = lost.get(base)
  if (objects === undefined) return
  lost.delete(base)
  if (binding.loseMemory(base, objects)) isToLook = true
}

function lose (registration) {
  if (registration.isLost) return
  registration.isLost = true
  const { base } = registration
  if (latest.get(base) === registration) latest.delete(base)
  const objects = lost.get(base) || 0
  lost.set(base, objects + 1)
  if (objects > 0) return
  losers[losers.length] = base
  schedule()
}

function watch (registration, buffer) {
  if (collected !== undefined) {
    collected.register(buffer, registration)
    return
  }
  for (let n = 0; n < LOOKED_AT && all.length > 0; n++) {
    if (next >= all.length) next = 0
    const other = all[next]
    if (other.ref.deref() === undefined) {
      all[next] = all[all.length - 1]
      all.length--
      lose(other)
    } else {
      next++
    }
  }
  all[all.length] = registration
}

module.exports = register
