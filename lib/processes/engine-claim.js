'use strict'

/** Claims: requests that wait for a lock of the engine, and the lines in which they do. */

const { AsyncResource } = require('async_hooks')
const { now } = require('../util/intrinsics')
const { LONGEST_TIMER, clearTimeout, setTimeout } = require('../util/timers')
const { abortReason } = require('../waiting/errors')
const observer = require('../waiting/observer')

/** A request that waits: it begins once, or gives up once. */
class Claim {
  /** @param {object} options as `readOptions` returns them */
  constructor (options, callback, resolve, reject) {
    this.options = options
    this.callback = callback
    this.resolve = resolve
    this.reject = reject
    this.isOver = false
    this.hasGivenUp = false
    /** The caller's asynchronous context. */
    this.scope = new AsyncResource('atomics-waitasync.ProcessLock')
    /** The call of the request, if stalls are reported. */
    this.origin = observer.callOf()
    this.timer = undefined
    this.onAbort = undefined
    this.onOver = undefined
  }

  /**
   * Waits from now on.
   * @param {(reason: unknown) => void} giveUp called once at most
   * @param {() => void} late called when the time is over
   */
  wait (giveUp, late, onOver) {
    const { signal, timeout } = this.options
    this.onOver = onOver
    if (timeout > 0 && timeout < Infinity) this.waitUntil(now() + timeout, late, timeout)
    if (signal === undefined) return
    // Some signals do not forget a listener.
    this.onAbort = () => { if (!this.isOver) giveUp(abortReason(signal)) }
    signal.addEventListener('abort', this.onAbort)
  }

  /** Calls `late` in a later turn. Timers of Node may fire a millisecond early. */
  waitUntil (deadline, late, left) {
    this.timer = setTimeout(() => {
      const more = deadline - now()
      if (more > 0) this.waitUntil(deadline, late, more)
      else late()
    }, Math.min(Math.ceil(left), LONGEST_TIMER))
  }

  /** Ends the wait in vain. */
  giveUp () {
    this.hasGivenUp = true
    this.end()
  }

  /** Ends the wait, before the callback begins or the promise rejects. */
  end () {
    this.isOver = true
    clearTimeout(this.timer)
    const { signal } = this.options
    if (this.onAbort !== undefined && typeof signal.removeEventListener === 'function') {
      signal.removeEventListener('abort', this.onAbort)
    }
    if (this.onOver !== undefined) this.onOver()
  }

  /** Calls a function of the program in its asynchronous context. */
  call (fn, argument) {
    return this.scope.runInAsyncScope(fn, undefined, argument)
  }
}

/** The claims of one thread to a name in a mode. */
class Line {
  constructor (name, mode) {
    this.name = name
    this.mode = mode
    this.claims = new Set()
    this.order = this.claims.values()
    /** Aborts the question to the engine, if there is one. */
    this.asking = undefined
    this.batch = undefined
  }

  /** Takes the first claim. One iterator for all: a new one would pass by all that have left. */
  shift () {
    let { value: first } = this.order.next()
    if (first === undefined) {
      this.order = this.claims.values()
      first = this.order.next().value
    }
    if (first === undefined) return undefined
    this.claims.delete(first)
    first.end()
    return first
  }

  get first () {
    for (const claim of this.claims) return claim
    return undefined
  }

  /** The label of the first claim, for other processes. */
  get label () {
    const { first } = this
    return first && first.options.label
  }
}

module.exports = { Claim, Line }
