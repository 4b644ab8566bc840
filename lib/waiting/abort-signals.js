'use strict'

/**
 * Aborts waiters by their AbortSignal. All waiters of a signal share one listener, since an EventTarget searches its
 * listeners for each one that is added or removed, and warns of many.
 *
 * Invariant: while there are waiters, the signal has the listener. The waiters are aborted in the
 * order in which they came.
 */

const { addAbortListener } = require('events')
const { assertStack } = require('../agent/find-agent')
const { apply, bare, createMap, createWeakMap, getOwnPropertyDescriptor, nextTick } = require('../util/intrinsics')
const { AbortSignal } = require('../util/global')

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

/** The waiters of a signal. */
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
const hears = exports.hears = (waiter) => (
  waiter.signal === undefined || audiences.get(waiter.signal).waiters.has(waiter))

/**
 * Lets a waiter be aborted by its signal, if it has one. False if the signal has aborted it meanwhile. Errors of
 * the signal are passed on.
 */
exports.join = function join (waiter) {
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

exports.leave = function leave (waiter) {
  const audience = waiter.signal === undefined ? undefined : audiences.get(waiter.signal)
  if (audience !== undefined) audience.remove(waiter)
}
