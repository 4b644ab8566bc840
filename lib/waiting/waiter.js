'use strict'

/**
 * A promise that is enqueued until it settles or is aborted: the base of Claim and Notice.
 *
 * agent/slots.js passes it the result by `settle(value)`. Each kind has:
 * - `prepare()`: does what may run a program's code before it is enqueued
 * - `enqueue()`: enqueues it, and runs no such code. Returns undefined, or the result if there is one at once
 * - `finish(result)`: settles the promise with such a result
 * - `resolve(value)` and `reject(reason)`, as methods or fields: settle the promise
 * - `giveUp(reason)`: dequeues it and rejects or, if it is too late for that, deals with the result when it comes
 * - `waitsFor`: a noun phrase for warnings
 *
 * # Signals
 * All waiters of a signal share one listener, since an EventTarget searches its listeners for each one that is added or
 * removed, and warns of many. Invariant: while there are waiters, the signal has the listener. The waiters are aborted
 * in the order in which they came.
 */

const { addAbortListener } = require('events')
const { agent, assertStack } = require('../agent/find-agent')
const { globalObject: { AbortSignal } } = require('../util/quirks')
const {
  apply, bare, createMap, createWeakMap, getOwnPropertyDescriptor, nextTick, shield
} = require('../util/intrinsics')
const { abortReason } = require('./errors')
const observer = require('./observer')

/** The keys of the words for which a warning has been given. */
const warned = createMap()

class Waiter {
  /** @param {Steps} [steps] the user's promise, of which this is a step */
  constructor (word, signal, steps) {
    this.word = word
    this.signal = signal
    if (steps !== undefined) this.steps = steps
    // Slots are reused: -1 keeps a late abort from cancelling the next occupant.
    this.slot = -1
    this.refed = steps === undefined || steps.refed
  }

  /**
   * Enqueues it, or settles the promise at once. It joins its signal first: if the signal's code throws, it must not be
   * enqueued; nor if code of the program's aborts it before that. The caller has made sure that there is stack.
   */
  begin () {
    let result
    try {
      if (this.steps !== undefined) this.steps.begin(this)
      join(this)
      observer.promiseBegins(this)
      this.prepare()
      if (!hears(this)) {
        this.end()
        return
      }
      result = this.enqueue()
    } catch (error) {
      this.end()
      throw error
    }
    if (result === undefined) {
      if (!this.refed) this.setRefed(false)
      if (this.onEnqueued !== undefined) this.onEnqueued()
      return
    }
    this.end()
    this.finish(result)
  }

  prepare () {}

  /** The number of the call that waits, if stalls are reported: see places.js; otherwise 0. */
  get call () {
    const { steps } = this
    return steps === undefined || steps.call === undefined ? 0 : steps.call.place
  }

  abort () {
    this.giveUp(abortReason(this.signal))
  }

  /** Dequeues it. False if that is too late: then it will be settled. */
  dequeue () {
    if (this.slot < 0 || !agent().cancel(this)) return false
    this.end()
    return true
  }

  /** Ends it: it is no longer enqueued, or never was. */
  end () {
    this.slot = -1
    leave(this)
  }

  /** Sets whether the wait holds the event loop. False if it is not enqueued. */
  setRefed (refed) {
    if (this.slot < 0) return false
    this.refed = refed
    agent().setSlotRefed(this.slot, refed)
    return true
  }

  /** The data for the warning of a loop that runs dry. Undefined if its word has been warned of before. */
  get pendingNote () {
    const { key } = this.word
    if (warned.has(key)) return undefined
    warned.set(key, true)
    return { waitsFor: this.waitsFor, isHolder: this.word.find() >= 0 }
  }
}
bare(Waiter)
// A waiter without these takes no memory for them. `onEnqueued` is called once it is enqueued, before all other code.
shield(Waiter, ['steps', 'onEnqueued'])

/**
 * A user's promise that is enqueued repeatedly before it settles. A Condition's promise is notified, and then claims
 * the lock again. `ref` and `unref` of the promise apply to each of these steps.
 */
class Steps {
  constructor () {
    // The waiter of the current or the last step.
    this.waiter = undefined
    this.refed = true
    this.promise = undefined
    // From the first step until the promise is about to settle.
    this.isPending = false
    // Why no further step is taken.
    this.reason = undefined
    // Where the promise came from, if a stall is to be reported; and its asynchronous context, if the channels of
    // diagnostics have subscribers. Noted here, since native code may begin a step outside of the call.
    this.call = observer.callOf()
    this.context = observer.contextOfWait()
  }

  /** Makes the agent remember `promise`, which takes these steps, and returns it. */
  of (promise) {
    if (this.isPending) agent().rememberSteps(promise, this)
    return promise
  }

  begin (waiter) {
    this.waiter = waiter
    this.isPending = true
  }

  /** Ends the steps: the promise is about to settle. */
  end () {
    this.isPending = false
    agent().forgetSteps(this)
  }

  setRefed (refed) {
    this.refed = refed
    // Between two steps it applies to the next one.
    if (this.waiter !== undefined) this.waiter.setRefed(refed)
    return true
  }

  /** Stops the steps: the promise rejects with `reason`. */
  reject (reason) {
    this.reason = reason
    if (this.waiter !== undefined) this.waiter.giveUp(reason)
  }
}
bare(Steps)

/**
 * Throws for signals that are not Node's own. Undefined where there are no signals, or other
 * code has replaced the class.
 */
const { get: getAborted } = (AbortSignal && getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')) || {}

/**
 * Adds a listener. On a signal of Node's own, no earlier listener can hide the abort from it by
 * `stopImmediatePropagation()`, where Node has a function for that.
 */
function listen (signal, listener) {
  if (addAbortListener !== undefined && isOfNode(signal)) addAbortListener(signal, listener)
  else signal.addEventListener('abort', listener, { once: true })
}

function isOfNode (signal) {
  try {
    apply(getAborted, signal, [])
    return true
  } catch (_) {
    return false
  }
}

/** The Audience of each signal. It is never replaced: `leave` finds it by the signal of the waiter. */
const audiences = createWeakMap()

class Audience {
  constructor (signal) {
    this.signal = signal
    this.waiters = createMap()
    this.count = 0
    // Whether the signal has the listener.
    this.listens = false
    this.listener = () => this.hear()
  }

  add (waiter) {
    this.waiters.set(waiter, true)
    this.count++
    if (this.listens) return
    this.listens = true
    try {
      listen(this.signal, this.listener)
    } catch (error) {
      this.listens = false
      // Unless the signal has called the listener before: then the waiter is aborted.
      if (this.waiters.has(waiter)) throw error
    }
  }

  remove (waiter) {
    if (this.waiters.delete(waiter) && --this.count === 0 && this.listens) this.stop()
  }

  /** Removes the listener if that is possible: otherwise the signal would keep it in memory. */
  stop () {
    try {
      const { signal } = this
      if (typeof signal.removeEventListener !== 'function') return
      this.listens = false
      signal.removeEventListener('abort', this.listener)
    } catch (_) {
      // This must not make the waiter fail that is being settled. The same listener is added again when needed.
    }
  }

  hear () {
    try {
      assertStack()
    } catch (_) {
      // A waiter might be dequeued without its promise being rejected. In a tick of its own there is enough stack.
      // eslint-disable-next-line own/one-door -- called by the signal
      nextTick(this.listener)
      return
    }
    try {
      this.waiters.forEach((_, waiter) => {
        this.remove(waiter)
        waiter.abort()
      })
      // The signal may have removed the listener, since it was added with `once`.
      this.listens = false
    } catch (error) {
      // The other waiters are aborted nevertheless.
      // eslint-disable-next-line own/one-door -- called by the signal
      if (this.count > 0) nextTick(this.listener)
      throw error
    }
  }
}
bare(Audience)

/** Whether a waiter has not been aborted since it joined its signal. */
const hears = (waiter) => (
  waiter.signal === undefined || audiences.get(waiter.signal).waiters.has(waiter))

/**
 * Lets a waiter be aborted by its signal, if it has one. False if the signal has aborted it meanwhile. Errors of
 * the signal are passed on.
 */
function join (waiter) {
  const { signal } = waiter
  if (signal === undefined) return true
  let audience = audiences.get(signal)
  if (audience === undefined) {
    audience = new Audience(signal)
    audiences.set(signal, audience)
  }
  audience.add(waiter)
  // A program's code may have aborted it since the caller looked: such a signal calls no listener.
  if (hears(waiter) && signal.aborted) {
    audience.remove(waiter)
    waiter.abort()
  }
  return hears(waiter)
}

function leave (waiter) {
  const audience = waiter.signal === undefined ? undefined : audiences.get(waiter.signal)
  if (audience !== undefined) audience.remove(waiter)
}

module.exports = { Steps, Waiter, join, leave }
