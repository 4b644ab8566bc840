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
 * answer at once (local-engine.js). Only what is not free goes by `#acquire`: timers, listeners and contexts are for
 * requests that wait.
 */

const { AsyncResource } = require('async_hooks')
const { threadId } = require('../util/worker-threads')
const { setImmediate } = require('../util/timers')
const { assertFunction } = require('../waiting/wait-options')
const { throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { assertStack } = require('../agent/find-agent')
const { take } = require('../holding/acquire')
const { granted } = require('../holding/run')
const { newGrant, stolenError } = require('../named/names')
const { readNames, requestAll } = require('./all-names')
const { Batch } = require('./batch')
const { Claim, Line, Lines } = require('./engine-claim')
const { query, soonestHolder } = require('./engine-query')
const { closedError, timeoutError, unavailableError } = require('./errors')
const { held } = require('./held-lock')
const { Question, isLocal } = require('./local-engine')
const limits = require('./limit-timers')
const { beginTask, endTask, frontOf, watch } = require('./long-wait')
const { assertEngine, assertString, readLocksOptions, readOptions } = require('./arguments')
const { holdSync, requestSync } = require('./request-sync')

const turn = () => new Promise((resolve) => setImmediate(resolve))

const ONE = { most: 1, milliseconds: 0 }

class ProcessLocks {
  #engine
  /** The engine, if it is a local one and unpatched by now. */
  #local
  #limits
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
    const local = this.#local = isLocal(engine) ? engine : undefined
    this.#lines = new Lines((name, mode) => (
      new Line(name, mode, frontOf(engine, name), local && local.placeOf(name, mode))))
    this.#limits = { most: batch, milliseconds: batchTime }
    this.#label = label
  }

  /** Calls `callback(lock)` with the lock of a name. `request(name, [options], callback)`. */
  request (name, options, callback) {
    const isShort = arguments.length < 3 && typeof options === 'function'
    const claim = new Claim(name, undefined, isShort ? options : callback)
    const promise = new Promise((resolve, reject) => {
      claim.resolve = resolve
      claim.reject = reject
    })
    // The constructor makes a rejection of a stack overflow in its executor.
    if (claim.reject === undefined) return promise
    try {
      claim.options = this.#read(name, isShort ? undefined : options, 'request')
      assertFunction(claim.callback, 'request')
      if (claim.options.maxHold !== undefined) limits.countUntilSettled(claim)
      this.#begin(claim)
    } catch (error) {
      claim.reject(error)
    }
    return promise
  }

  /** Calls `callback(lock)` with the locks of all names. `requestAll(names, [options], callback)`. */
  async requestAll (names, options, callback) {
    const isShort = arguments.length < 3 && typeof options === 'function'
    return this.#requestAll(names, isShort ? undefined : options, 'requestAll', isShort ? options : callback)
  }

  /** Holds the lock of a name until its `unlock()`. Null if it is not available. */
  hold (name, options) {
    return held((callback, resolve, reject) => {
      this.#begin(new Claim(name, this.#read(name, options, 'hold'), callback, resolve, reject))
    })
  }

  /** Holds the locks of all names until `unlock()`. Null if one is not available. */
  holdAll (names, options) {
    return held((callback, resolve) => resolve(this.#requestAll(names, options, 'holdAll', callback)))
  }

  async #requestAll (names, options, caller, callback) {
    const all = readNames(names, caller)
    const read = readOptions(options, caller, this.#engine, this.#label)
    assertFunction(callback, caller)
    const hold = (name, one) => held((each, ...settle) => this.#begin(new Claim(name, one, each, ...settle)))
    return requestAll(all, read, hold, callback)
  }

  /** Blocks this thread. `requestSync(name, [options], callback)`. */
  requestSync (name, options, callback) {
    const given = arguments.length < 3 && typeof options === 'function' ? [undefined, options] : [options, callback]
    const read = this.#read(name, given[0], 'requestSync')
    assertFunction(given[1], 'requestSync')
    if (this.#closed !== undefined) throw this.#closed
    return requestSync(this.#engine, this.#lines.of(name, read.mode), read, given[1])
  }

  /** Blocks this thread, and holds the lock until its `unlock()`. Null if it is not available. */
  holdSync (name, options) {
    const read = this.#read(name, options, 'holdSync')
    if (this.#closed !== undefined) throw this.#closed
    const lock = holdSync(this.#engine, this.#lines.of(name, read.mode), read, () => this.#end())
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

  /** Reads the arguments of one name. Those who give no options share theirs. */
  #read (name, options, caller) {
    assertString(name, caller, 'name')
    if (options !== undefined) return readOptions(options, caller, this.#engine, this.#label)
    if (this.#usual === undefined) this.#usual = readOptions(undefined, caller, this.#engine, this.#label)
    return this.#usual
  }

  /** Begins a request, whose promise will be settled; or throws. What is free is taken at once. */
  #begin (claim) {
    const { name, options } = claim
    const { mode, signal, timeout, ifAvailable, maxHold, permits } = options
    if (this.#closed !== undefined) throw this.#closed
    if (signal !== undefined) throwIfAborted(signal)
    assertStack()
    const line = this.#lines.of(name, mode)
    const isAttempt = ifAvailable || timeout === 0
    if (isAttempt || maxHold !== undefined || permits !== undefined) {
      this.#ask(line.alone(options, this.#local), isAttempt, claim)
    } else if (line.isIdle) {
      this.#ask(line, false, claim)
    } else {
      this.#wait(line, claim)
      this.#serve(line)
    }
  }

  /**
   * Puts a claim into a line. If it gives up, its promise rejects in a later turn: once the named lock in front is
   * free, so that a request that follows finds it so.
   */
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
      await turn()
      await rejectNow()
      this.#end()
    }
    const giveUp = (reason) => leave(() => claim.reject(reason))
    this.#leave.add(giveUp)
    limits.count(1)
    const forget = () => { if (this.#leave.delete(giveUp)) limits.count(-1) }
    try {
      claim.wait(giveUp, () => leave(() => this.#rejectLate(claim)), forget)
    } catch (error) {
      line.claims.delete(claim)
      forget()
      throw error
    }
  }

  #end () {
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
   */
  #ask (line, isAttempt, claim) {
    this.#busy++
    const batch = new Batch(line, line.isAlone ? ONE : this.#limits, this.#scope, claim)
    let isFirst, failure
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
      failure = this.#failureOf(batch, error)
    }
    if (failure !== undefined || isOver) this.#finish(batch, isAttempt, failure)
    else if (batch.grant !== undefined) this.#hold(batch)
    else this.#acquire(batch, isAttempt, isFirst)
  }

  /** Waits for a lock that is taken, or for its engine's answer. Never rejects. */
  async #acquire (batch, isAttempt, isFirst) {
    const { line, front, first } = batch
    const local = line.place && this.#local
    let failure
    try {
      // Before the claim waits: a hook of async_hooks may make a request meanwhile, or abort this one.
      const asking = batch.asking = line.asking = local ? new Question() : new AbortController()
      if (first !== undefined) this.#wait(line, first)
      batch.first = undefined
      line.isBeginning = false
      const { signal } = asking
      // By such a hook.
      throwIfAborted(signal)
      let grant
      if (isAttempt) {
        grant = await this.#askEngine('attempt', line, signal)
      } else {
        if (!isFirst) grant = await this.#waitForFront(line, front, signal)
        if (grant === undefined) {
          front.onStolen = () => asking.abort()
          const end = watch(this.#engine, line.name, line.first, () => this.#holderOf(line.name))
          try {
            grant = await (local
              ? local.wait(line.place, line.asker.label, signal)
              : this.#askEngine('acquire', line, signal))
          } finally {
            end()
          }
        }
      }
      const { isStolen } = front
      if (grant && (isStolen || signal.aborted)) await grant.release(grant.ownerDied)
      if (isStolen) throw stolenError(line.front)
      if (!grant && !isAttempt) throw new TypeError('its engine gave no grant')
      if (grant && line.asking === asking) {
        line.asking = batch.asking = undefined
        batch.hold(grant)
      }
    } catch (error) {
      failure = this.#failureOf(batch, error)
      if (batch.grant !== undefined) await batch.fail(error)
    }
    if (failure === undefined && batch.grant !== undefined) this.#hold(batch)
    else this.#finish(batch, isAttempt, failure)
  }

  /** Begins to run the claims of a line, also those that join. */
  #hold (batch) {
    const { line } = batch
    line.batch = batch
    line.isBeginning = false
    // Those behind the one that begins.
    const first = batch.isExclusive && batch.first === undefined ? 1 : 0
    if (line.claims.size > first) this.#serve(line)
    this.#run(batch)
  }

  /** Runs callbacks under the lock, and gives it back. Never rejects. */
  async #run (batch) {
    await undefined // its request has to return first
    for (let step = batch.nextOrFail(); step !== undefined; step = batch.nextOrFail()) await step
    this.#finish(batch, false, batch.failure && this.#failureOf(batch, batch.failure.error))
  }

  #failureOf ({ front, line }, error) {
    return unavailableError(line.name, front !== undefined && front.isStolen ? stolenError(line.front) : error)
  }

  /** Ends a question to the engine, with or without its lock. */
  #finish (batch, isAttempt, failure) {
    const { asking, first, front, line } = batch
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
      if (failure !== undefined) line.reject(failure, first)
      else if (isAttempt) return this.#decline(first || line.shift())
      else if (line.claims.size > 0) this.#serve(line)
    }
    this.#end()
  }

  /** Asks the engine by one of its functions. */
  #askEngine (ask, { name, mode, asker }, signal) {
    return this.#scope.runInAsyncScope(() => this.#engine[ask](name, mode, signal, { ...asker, threadId }))
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
      else claim.resolve(await claim.call(claim.callback, null))
    } catch (error) {
      claim.reject(error)
    } finally {
      this.#end()
    }
  }

  /** Rejects a request whose time is over, with the holder. Never rejects itself. */
  async #rejectLate (claim) {
    const { name, options: { wholeTimeout } } = claim
    claim.reject(timeoutError(name, wholeTimeout, await this.#holderOf(name)))
  }

  /** Returns the first holder; undefined if the engine does not tell it soon. */
  #holderOf (name) {
    return soonestHolder(this.#engine, this.#scope, name)
  }
}

module.exports = { ProcessLocks }
