'use strict'

/**
 * Locks by name for all threads of all processes of an engine.
 *
 * - The named lock of this package stands in front: one thread of a process at a time has or asks for the engine's
 *   exclusive lock of a name. Engines rely on it: a session or a lease gets the same name twice.
 * - Requests of one thread run as a batch under one lock of the engine: up to `batch` of them, none of which begins
 *   later than `batchTime` milliseconds after the first. Then it is the turn of other threads and processes.
 * - A promise fulfils only once the engine has said, after the end of the callback, that the lock was still held.
 * - It rejects as soon as the loss of the lock is noticed, and no other callback begins under that lock. The one that
 *   runs, runs on: its writes have to carry the token. The next holder has `ownerDied`.
 * - Every error is a rejection of the promise that `request` returned.
 *
 * A request goes one way: `#begin`, `#ask`, `#run`. What is free is taken in the call of `request`, if the engine can
 * answer at once (built-in-engine.js). Only what is not free goes by `#acquire`: timers, listeners and contexts are for
 * requests that wait.
 */

const { AsyncResource } = require('async_hooks')
const { threadId } = require('../util/worker-threads')
const { Promise, apply, setPrototypeOf } = require('../util/intrinsics')
const { setImmediate } = require('../util/timers')
const { assertFunction } = require('../waiting/wait-options')
const { throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { assertStack } = require('../agent/find-agent')
const { take } = require('../holding/acquire')
const { granted } = require('../holding/run')
const { newGrant } = require('../named/names')
const { Batch } = require('./batch')
const { LocalEngine, Question, isBuiltIn } = require('./built-in-engine')
const { Claim, Line, Lines } = require('./engine-claim')
const { held, holdSync, readNames, requestAll, requestSync } = require('./forms')
const { beginTask, endTask, frontOf, query, soonestHolder, watch } = require('./long-wait')
const {
  assertEngine, assertString, closedError, readLocksOptions, readOptions, timeoutError, unavailableError
} = require('./arguments')

/** For jobs. No class of a program's makes the promises of these, as `constructor` would say. */
const RETURNED = Promise.resolve()
setPrototypeOf(RETURNED, null)
const { then } = Promise.prototype

const rejected = async (error) => { throw error }

class ProcessLocks {
  #engine
  /** Whether the engine is one of this package, unpatched by now. */
  #isBuiltIn
  /** It, if its locks are on this machine, too. */
  #local
  #terms
  #label
  /** The options of requests that have none. */
  #usual
  #lines
  /** What makes the claims that wait give up. */
  #leave = new Set()
  /** How many questions and rejections are under way; and what `close` awaits until there are none. */
  #busy = 0
  #onIdle = []
  #closed
  /** The engine works in no request's asynchronous context. */
  #scope = new AsyncResource('atomics-waitasync.ProcessLocks')

  constructor (engine, options) {
    assertEngine(engine)
    const { batch, batchTime, label } = readLocksOptions(options)
    this.#engine = engine
    this.#isBuiltIn = isBuiltIn(engine)
    const local = this.#local = this.#isBuiltIn && engine instanceof LocalEngine ? engine : undefined
    this.#lines = new Lines((name, mode) => (
      new Line(name, mode, frontOf(engine, name), local && local.placeOf(name, mode))))
    this.#terms = { most: batch, milliseconds: batchTime, scope: this.#scope }
    this.#label = label
  }

  /** Calls `callback(lock)` with the lock of a name. `request(name, [options], callback)`. */
  request (name, options, callback) {
    const isShort = arguments.length < 3 && typeof options === 'function'
    try {
      const read = this.#read(name, isShort ? undefined : options, 'request')
      const claim = new Claim(name, read, isShort ? options : callback)
      assertFunction(claim.callback, 'request')
      return this.#begin(claim)
    } catch (error) {
      return rejected(error)
    }
  }

  /** Calls `callback(lock)` with the locks of all names. `requestAll(names, [options], callback)`. */
  async requestAll (names, options, callback) {
    const isShort = arguments.length < 3 && typeof options === 'function'
    return this.#requestAll(names, isShort ? undefined : options, 'requestAll', isShort ? options : callback)
  }

  /** Holds the lock of a name until its `unlock()`. Null if it is not available. */
  hold (name, options) {
    return held((callback) => this.#begin(new Claim(name, this.#read(name, options, 'hold'), callback)))
  }

  /** Holds the locks of all names until `unlock()`. Null if one is not available. */
  holdAll (names, options) {
    return held((callback) => this.#requestAll(names, options, 'holdAll', callback))
  }

  async #requestAll (names, options, caller, callback) {
    const all = readNames(names, caller)
    const read = readOptions(options, caller, this.#engine, this.#label)
    assertFunction(callback, caller)
    return requestAll(all, read, (name, one, each) => this.#begin(new Claim(name, one, each)), callback)
  }

  /** Blocks this thread. `requestSync(name, [options], callback)`. */
  requestSync (name, options, callback) {
    const given = arguments.length < 3 && typeof options === 'function' ? [undefined, options] : [options, callback]
    const read = this.#read(name, given[0], 'requestSync')
    assertFunction(given[1], 'requestSync')
    return requestSync(this.#engine, this.#lines.of(name, read.mode), read, given[1])
  }

  /** Blocks this thread, and holds the lock until its `unlock()`. Null if it is not available. */
  holdSync (name, options) {
    const read = this.#read(name, options, 'holdSync')
    const lock = holdSync(this.#engine, this.#lines.of(name, read.mode), read, () => this.#leaves())
    if (lock !== null) this.#busy++
    return lock
  }

  /** Lists who holds locks and who waits: of one name, or of all. */
  async query (name) {
    if (name !== undefined && typeof name !== 'string') throw new TypeError('query: name must be a string')
    if (this.#closed !== undefined) throw this.#closed
    return query(this.#engine, this.#scope, name)
  }

  /** Rejects what waits, lets what runs end, and closes the engine. */
  async close () {
    if (this.#closed === undefined) this.#closed = closedError()
    for (const giveUp of this.#leave) giveUp(this.#closed)
    if (this.#busy > 0) await new Promise((resolve) => this.#onIdle.push(resolve))
    await this.#engine.close()
  }

  /** Reads the arguments of one name, unless the locks are closed. Those who give no options share theirs. */
  #read (name, options, caller) {
    assertString(name, caller, 'name')
    if (this.#closed !== undefined) throw this.#closed
    if (options !== undefined) return readOptions(options, caller, this.#engine, this.#label)
    return (this.#usual = this.#usual || readOptions(undefined, caller, this.#engine, this.#label))
  }

  /** Begins a request, and returns its promise; or throws. What is free is taken at once. */
  #begin (claim) {
    const { name, options } = claim
    const { mode, signal, timeout, ifAvailable, maxHold, permits } = options
    if (this.#closed !== undefined) throw this.#closed
    if (signal !== undefined) throwIfAborted(signal)
    assertStack()
    const line = this.#lines.of(name, mode)
    const isAttempt = ifAvailable || timeout === 0
    const isAlone = isAttempt || maxHold !== undefined || permits !== undefined
    if (isAlone || line.isIdle) {
      return this.#ask(isAlone ? line.alone(options, this.#local) : line, isAttempt, claim) || claim.newPromise()
    }
    this.#wait(line, claim)
    this.#serve(line)
    return claim.newPromise()
  }

  /** Puts a claim into a line. One that gives up rejects in a later turn, when the named lock in front is free. */
  #wait (line, claim) {
    line.claims.add(claim)
    const leave = async (rejectNow) => {
      claim.end()
      line.claims.delete(claim)
      const { asking } = line
      if (line.claims.size === 0 && asking !== undefined) {
        line.asking = undefined
        asking.abort()
      }
      this.#busy++
      await new Promise((resolve) => setImmediate(resolve))
      await rejectNow()
      this.#leaves()
    }
    const giveUp = (reason) => leave(() => claim.settle(reason, true))
    this.#leave.add(giveUp)
    try {
      claim.wait(giveUp, () => leave(() => this.#rejectLate(claim)), () => this.#leave.delete(giveUp))
    } catch (error) {
      line.claims.delete(claim)
      this.#leave.delete(giveUp)
      throw error
    }
  }

  #leaves () {
    if (--this.#busy === 0 && this.#onIdle.length > 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Sees to it that a lock is asked for if claims wait. */
  #serve (line) {
    const { batch } = line
    if (batch !== undefined) {
      if (line.mode === 'exclusive') return batch.whenLate(() => this.#serve(line))
      batch.join()
    }
    if (line.isBeginning || line.asking !== undefined || line.claims.size === 0) return
    const { first } = line
    // That request's call waits for the name in front.
    first.call(() => observer.callFor(first.origin, () => this.#ask(line, false)))
  }

  /**
   * Gets the lock, and runs the claims of a line under it. What is free is taken in this call. Never throws.
   * @param {Claim} [claim] the first, if it does not wait yet
   * @returns {Promise | undefined} the outcome of that claim, if it begins in the next job
   */
  #ask (line, isAttempt, claim) {
    this.#busy++
    const batch = new Batch(line, this.#terms, claim)
    let isFirst
    let isOver = false
    // Code that watches, such as a hook of async_hooks, may make requests meanwhile: those wait.
    line.isBeginning = true
    try {
      const front = batch.front = newGrant(line.front, line.sharesFront)
      isFirst = take(front)
      if (isFirst) beginTask(front)
      const local = line.place && this.#local
      const label = claim === undefined ? line.asker.label : claim.options.label
      const grant = isFirst && local ? local.takeNow(line.place, label, isAttempt) : undefined
      if (grant !== undefined) batch.hold(grant)
      // An attempt is over if others of this process are first, or the engine has answered.
      else isOver = isAttempt && (!isFirst || (local && !local.isSlow))
    } catch (error) {
      batch.failure = { error }
    }
    if (batch.failure !== undefined || isOver) {
      this.#finish(batch, isAttempt)
    } else if (batch.grant !== undefined) {
      this.#hold(batch)
      // The request has to return first.
      return apply(then, RETURNED, [() => this.#run(batch)])
    } else {
      this.#acquire(batch, isAttempt, isFirst)
    }
    return undefined
  }

  /** Waits for a lock that is taken, or for its engine's answer. Never rejects. */
  async #acquire (batch, isAttempt, isFirst) {
    const { line, front, first } = batch
    const local = line.place && this.#local
    try {
      // Before the claim waits: a hook of async_hooks may make a request meanwhile, or abort this one.
      const asking = batch.asking = line.asking = this.#isBuiltIn ? new Question() : new AbortController()
      if (first !== undefined) this.#wait(line, first)
      batch.first = undefined
      line.isBeginning = false
      const { signal } = asking
      // By such a hook.
      throwIfAborted(signal)
      let grant
      if (isAttempt) {
        grant = await this.#askEngine(line, signal, true)
      } else {
        if (!isFirst) grant = await this.#waitForFront(line, front, signal)
        if (grant === undefined) {
          const end = watch(this.#engine, this.#scope, line.name, line.first)
          try {
            grant = await (local
              ? local.wait(line.place, line.asker.label, signal)
              : this.#askEngine(line, signal, false))
          } finally {
            end()
          }
        }
      }
      if (grant && signal.aborted) await grant.release(grant.ownerDied)
      if (!grant && !isAttempt) throw new TypeError('its engine gave no grant')
      if (grant && line.asking === asking) {
        line.asking = batch.asking = undefined
        batch.hold(grant, this.#isBuiltIn)
      }
    } catch (error) {
      await batch.fail(error)
    }
    if (batch.failure === undefined && batch.grant !== undefined) {
      this.#hold(batch)
      this.#run(batch)
    } else {
      this.#finish(batch, isAttempt)
    }
  }

  /** Begins to run the claims of a line, also those that join. */
  #hold (batch) {
    const { line } = batch
    line.batch = batch
    line.isBeginning = false
    // Those behind the one that begins.
    const first = batch.isExclusive && batch.first === undefined ? 1 : 0
    if (line.claims.size > first) this.#serve(line)
  }

  /** Runs callbacks under the lock, and gives it back. Gives the outcome of a claim that has not waited. */
  #run (batch) {
    const { first } = batch
    const step = batch.next()
    if (step === undefined) this.#finish(batch, false)
    else this.#goOn(batch, step)
    return first && first.outcome
  }

  /** Takes the steps after one that lasts. Never rejects. */
  async #goOn (batch, begun) {
    for (let step = begun; step !== undefined; step = batch.next()) await step
    this.#finish(batch, false)
  }

  /** Ends a question to the engine, with or without its lock. */
  #finish (batch, isAttempt) {
    const { asking, failure, first, front, line } = batch
    line.isBeginning = false
    if (line.batch === batch) line.batch = undefined
    // Unless all that wait have given up.
    const isWanted = line.asking === asking
    if (isWanted) line.asking = undefined
    if (front !== undefined) {
      endTask(front)
      front.end(false, true)
    }
    // Once the named lock in front is free, too: an attempt that follows must find both.
    batch.settle()
    if (isWanted) {
      if (failure !== undefined) line.reject(unavailableError(line.name, failure.error), first)
      else if (isAttempt) return this.#decline(first || line.shift())
      else if (line.claims.size > 0) this.#serve(line)
    }
    this.#leaves()
  }

  /** Asks the engine for a lock. */
  #askEngine ({ name, mode, asker }, signal, isAttempt) {
    const who = { ...asker, threadId }
    return this.#scope.runInAsyncScope(() => (this.#isBuiltIn
      ? this.#engine.enter(name, mode, signal, who, isAttempt)
      : this.#engine[isAttempt ? 'attempt' : 'acquire'](name, mode, signal, who)))
  }

  /** Waits behind others of this process. Returns the lock if it is free then. */
  async #waitForFront (line, front, signal) {
    const refused = await granted(front, { timeout: Infinity, signal }, {})
    if (refused !== undefined) throw refused.reason
    throwIfAborted(signal)
    beginTask(front)
    return line.place && this.#local ? this.#local.takeNow(line.place, line.asker.label, false) : undefined
  }

  /** Settles a request whose attempt was in vain. Never rejects. */
  async #decline (claim) {
    try {
      if (claim === undefined) return
      await undefined // its request has to return first
      claim.assertWanted()
      if (this.#closed !== undefined) throw this.#closed
      if (!claim.options.ifAvailable) await this.#rejectLate(claim)
      else claim.settle(await claim.call(claim.callback, null), false)
    } catch (error) {
      claim.settle(error, true)
    } finally {
      this.#leaves()
    }
  }

  /** Rejects a request whose time is over, with the holder. Never rejects itself. */
  async #rejectLate (claim) {
    const { name, options: { wholeTimeout } } = claim
    claim.settle(timeoutError(name, wholeTimeout, await soonestHolder(this.#engine, this.#scope, name)), true)
  }
}

module.exports = { ProcessLocks }
