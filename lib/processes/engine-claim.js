'use strict'

/** Claims: requests for a lock of the engine, and the lines in which they wait. */

const { AsyncResource } = require('async_hooks')
const { now } = require('../util/intrinsics')
const { LONGEST_TIMER, clearTimeout, setTimeout } = require('../util/timers')
const { callWithin } = require('../holding/run')
const { abortReason, throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')

/** A request: it begins once, or gives up once. */
class Claim {
  /** @param {object} options as `readOptions` returns them */
  constructor (name, options, callback) {
    this.name = name
    this.options = options
    this.callback = callback
    this.resolve = this.reject = undefined
    this.isOver = false
    /** What the callback has given, or has thrown; and whether that counts. */
    this.result = undefined
    this.hasFailed = this.isSettled = false
    /** The next one whose callback has ended under the same lock. */
    this.next = undefined
    // Of one that waits: the caller's asynchronous context, and its call, if stalls are reported.
    this.scope = this.origin = undefined
    this.timer = this.onAbort = this.onOver = undefined
  }

  newPromise () {
    return new Promise((resolve, reject) => this.whenSettled(resolve, reject))
  }

  whenSettled (resolve, reject) {
    this.resolve = resolve
    this.reject = reject
    if (this.isSettled) this.settle(this.result, this.hasFailed)
  }

  /** What its job gives or throws: the result, if that counts by now; else what settles the job's promise then. */
  get outcome () {
    // No promise: that of the job would be settled later than the promises of those behind.
    if (!this.isSettled) return { then: (resolve, reject) => this.whenSettled(resolve, reject) }
    if (this.hasFailed) throw this.result
    return this.result
  }

  /** Settles its promise, now or once that can be. */
  settle (result, hasFailed) {
    this.result = result
    this.hasFailed = hasFailed
    if (this.resolve === undefined) this.isSettled = true
    else if (hasFailed) this.reject(result)
    else this.resolve(result)
  }

  /**
   * Waits from now on.
   * @param {(reason: unknown) => void} giveUp called once at most
   * @param {() => void} late called when the time is over
   */
  wait (giveUp, late, onOver) {
    const { signal, timeout } = this.options
    this.onOver = onOver
    // A hook of async_hooks may close the locks, or abort the signal.
    this.scope = new AsyncResource('atomics-waitasync.ProcessLock')
    if (this.isOver) return
    this.origin = observer.callOf()
    if (signal !== undefined) {
      // Some signals do not forget a listener; and some throw.
      const onAbort = () => { if (!this.isOver) giveUp(abortReason(signal)) }
      signal.addEventListener('abort', onAbort)
      this.onAbort = onAbort
      if (signal.aborted) onAbort()
    }
    if (!this.isOver && timeout > 0 && timeout < Infinity) this.waitUntil(now() + timeout, late, timeout)
  }

  /** Calls `late` in a later turn. Timers of Node may fire a millisecond early. */
  waitUntil (deadline, late, left) {
    this.timer = setTimeout(() => {
      const more = deadline - now()
      if (more > 0) this.waitUntil(deadline, late, more)
      else late()
    }, Math.min(Math.ceil(left), LONGEST_TIMER))
    // As above.
    if (this.isOver) clearTimeout(this.timer)
  }

  /** Throws if its signal was aborted in the call's job. One that waits has a listener. */
  assertWanted () {
    const { signal } = this.options
    if (signal !== undefined && this.scope === undefined) throwIfAborted(signal, abortReason)
  }

  /** Ends the wait, before the callback begins or the promise rejects. */
  end () {
    this.isOver = true
    if (this.timer !== undefined) clearTimeout(this.timer)
    if (this.onOver !== undefined) this.onOver()
    if (this.onAbort === undefined) return
    try {
      this.options.signal.removeEventListener('abort', this.onAbort)
    } catch (_) {
      // It has no such function, or that throws: the request goes on.
    }
  }

  /** Calls a function in the caller's asynchronous context. One that has not waited is in it. */
  call (fn, argument) {
    return this.scope === undefined ? fn(argument) : this.scope.runInAsyncScope(fn, undefined, argument)
  }

  /** Calls a function of the program in a task of a hold. */
  callWithin (token, fn, lock) {
    const { scope } = this
    if (scope === undefined) return callWithin(token, fn, lock)
    return scope.runInAsyncScope(callWithin, undefined, token, fn, lock)
  }
}

/** The claims of one thread to a name in a mode. */
class Line {
  /**
   * @param {string} front the named lock in front
   * @param {object} [place] of a local engine, which gives the lock at once
   */
  constructor (name, mode, front, place) {
    this.name = name
    this.mode = mode
    this.front = front
    this.sharesFront = mode === 'shared'
    this.place = place
    this.claims = new Set()
    this.order = this.claims.values()
    /** Aborts the question to the engine, if there is one that lasts. */
    this.asking = undefined
    this.batch = undefined
    /** Whether the lock is being asked for in this job. */
    this.isBeginning = false
  }

  get isIdle () {
    return !this.isBeginning && this.asking === undefined && this.batch === undefined && this.claims.size === 0
  }

  /**
   * Makes a line of its own for one claim: for an attempt, or for one whose lock nobody shares.
   * @param {import('./built-in-engine').LocalEngine} [local]
   */
  alone ({ maxHold, permits }, local) {
    // In front, those with permits stand in nobody's way.
    const front = permits === undefined ? this.front : this.front + '\0permits'
    let place
    if (permits !== undefined) place = local && local.permitPlace(this.name, permits)
    else if (maxHold === undefined) place = this.place
    const line = new Line(this.name, this.mode, front, place)
    line.sharesFront ||= permits !== undefined
    return line
  }

  /** Takes the first claim. One iterator for all: a new one would pass by all that have left. */
  shift () {
    if (this.claims.size === 0) return undefined
    let { value: first } = this.order.next()
    if (first === undefined) {
      this.order = this.claims.values()
      first = this.order.next().value
    }
    this.claims.delete(first)
    first.end()
    return first
  }

  /** Rejects a claim, and all that wait. */
  reject (error, claim) {
    if (claim !== undefined) claim.settle(error, true)
    for (let claim = this.shift(); claim !== undefined; claim = this.shift()) claim.settle(error, true)
  }

  get first () {
    for (const claim of this.claims) return claim
    return undefined
  }

  /** What an engine is to know of the first claim: its label, for other processes, and how it differs from others. */
  get asker () {
    const { first } = this
    if (first === undefined) return {}
    const { label, maxHold, permits } = first.options
    if (permits !== undefined) return { label, permits }
    return maxHold === undefined ? { label } : { label, maxHold }
  }
}

/** How many lines are kept that nobody uses. */
const MOST_IDLE = 256

/** The lines of all names. */
class Lines {
  #make
  #byMode = { exclusive: new Map(), shared: new Map() }
  #most = MOST_IDLE

  /** @param {(name: string, mode: string) => Line} make */
  constructor (make) {
    this.#make = make
  }

  of (name, mode) {
    const lines = this.#byMode[mode]
    let line = lines.get(name)
    if (line === undefined) {
      if (lines.size >= this.#most) this.#tidy(lines)
      line = this.#make(name, mode)
      lines.set(name, line)
    }
    return line
  }

  /** Forgets lines that nobody uses. */
  #tidy (lines) {
    for (const [name, line] of lines) if (line.isIdle) lines.delete(name)
    this.#most = Math.max(MOST_IDLE, 2 * lines.size)
  }
}

module.exports = { Claim, Line, Lines }
