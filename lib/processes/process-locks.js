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
 * A request goes one way: `#begin`, `#ask`, `Batch.run`. What is free is taken in the call of `request`, if the engine
 * can answer at once (local-engine.js). Timers, listeners and contexts are for requests that wait.
 */

const { AsyncResource } = require('async_hooks')
const { threadId } = require('../util/worker-threads')
const { clearTimeout, setImmediate, setTimeout } = require('../util/timers')
const { assertFunction } = require('../waiting/wait-options')
const { throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { assertStack } = require('../agent/find-agent')
const { take } = require('../holding/acquire')
const { SERIAL } = require('../holding/entry')
const { granted } = require('../holding/run')
const theList = require('../holding/the-list')
const { newGrant, stolenError } = require('../named/names')
const { readNames, requestAll } = require('./all-names')
const { Batch } = require('./batch')
const { Claim, Line } = require('./engine-claim')
const { closedError, obstacleIn, timeoutError, unavailableError } = require('./errors')
const { held } = require('./held-lock')
const { isLocal } = require('./local-engine')
const limits = require('./limit-timers')
const { frontOf, watch } = require('./long-wait')
const { assertEngine, readLocksOptions, readOptions } = require('./arguments')
const { holdSync, requestSync } = require('./request-sync')

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** How long the error of a timeout waits for its holder. */
const QUERY_MILLISECONDS = 1000
/** How many lines are kept that nobody uses. */
const MOST_IDLE = 256
const ONE = { most: 1, milliseconds: 0 }

/** Makes the hold of the name in front a task: reports know that its thread awaits no other lock within it. */
function beginTask ({ token }) {
  const { tasks } = theList()
  if (tasks !== undefined) tasks.begin(token[SERIAL])
}

function endTask ({ token }) {
  const { tasks } = theList()
  if (tasks !== undefined) tasks.endOf(token[SERIAL])
}

class ProcessLocks {
  #engine
  /** The engine, if it is a local one and unpatched by now. */
  #local
  #limits
  #label
  #lines = { exclusive: new Map(), shared: new Map() }
  #mostLines = MOST_IDLE
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
    this.#local = isLocal(engine) ? engine : undefined
    this.#limits = { most: batch, milliseconds: batchTime }
    this.#label = label
  }

  /** Calls `callback(lock)` with the lock of a name. `request(name, [options], callback)`. */
  request (name, options, callback) {
    return new Promise((resolve, reject) => {
      const isShort = arguments.length < 3 && typeof options === 'function'
      const read = readOptions(name, isShort ? undefined : options, 'request', this.#engine, this.#label)
      const fn = isShort ? options : callback
      assertFunction(fn, 'request')
      const [fulfil, fail] = read.maxHold === undefined ? [resolve, reject] : limits.counted(resolve, reject)
      try {
        this.#begin(new Claim(read, fn, fulfil, fail))
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Calls `callback(lock)` with the locks of all names. `requestAll(names, [options], callback)`. */
  async requestAll (names, options, callback) {
    const isShort = arguments.length < 3 && typeof options === 'function'
    return this.#requestAll(names, isShort ? undefined : options, 'requestAll', isShort ? options : callback)
  }

  /** Holds the lock of a name until its `unlock()`. Null if it is not available. */
  hold (name, options) {
    return held((callback, resolve, reject) => {
      const read = readOptions(name, options, 'hold', this.#engine, this.#label)
      this.#begin(new Claim(read, callback, resolve, reject))
    })
  }

  /** Holds the locks of all names until `unlock()`. Null if one is not available. */
  holdAll (names, options) {
    return held((callback, resolve) => resolve(this.#requestAll(names, options, 'holdAll', callback)))
  }

  async #requestAll (names, options, caller, callback) {
    const all = readNames(names, caller)
    const read = readOptions(all[0], options, caller, this.#engine, this.#label)
    assertFunction(callback, caller)
    const hold = (one) => held((each, resolve, reject) => this.#begin(new Claim(one, each, resolve, reject)))
    return requestAll(all, read, hold, callback)
  }

  /** Blocks this thread. `requestSync(name, [options], callback)`. */
  requestSync (name, options, callback) {
    const given = arguments.length < 3 && typeof options === 'function' ? [undefined, options] : [options, callback]
    const read = readOptions(name, given[0], 'requestSync', this.#engine, this.#label)
    assertFunction(given[1], 'requestSync')
    if (this.#closed !== undefined) throw this.#closed
    return requestSync(this.#engine, this.#lineOf(read.name, read.mode), read, given[1])
  }

  /** Blocks this thread, and holds the lock until its `unlock()`. Null if it is not available. */
  holdSync (name, options) {
    const read = readOptions(name, options, 'holdSync', this.#engine, this.#label)
    if (this.#closed !== undefined) throw this.#closed
    const lock = holdSync(this.#engine, this.#lineOf(read.name, read.mode), read, () => this.#end())
    if (lock !== null) this.#busy++
    return lock
  }

  /** Lists who holds locks and who waits: of one name, or of all. */
  async query (name) {
    if (name !== undefined && typeof name !== 'string') throw new TypeError('query: name must be a string')
    if (this.#closed !== undefined) throw this.#closed
    return this.#query(name)
  }

  /** Rejects what waits, lets what runs end, and closes the engine. */
  async close () {
    if (this.#closed === undefined) this.#closed = closedError()
    for (const giveUp of this.#leave) giveUp(this.#closed)
    if (this.#busy > 0) await new Promise((resolve) => this.#onIdle.push(resolve))
    await this.#engine.close()
  }

  /** Begins a request, whose promise will be settled; or throws. What is free is taken at once. */
  #begin (claim) {
    const { name, mode, signal, timeout, ifAvailable, maxHold, permits } = claim.options
    if (this.#closed !== undefined) throw this.#closed
    throwIfAborted(signal)
    assertStack()
    const line = this.#lineOf(name, mode)
    const isAttempt = ifAvailable || timeout === 0
    if (isAttempt || maxHold !== undefined || permits !== undefined) {
      return this.#ask(line.alone(claim.options, this.#local), isAttempt, claim)
    }
    if (line.isIdle) return this.#ask(line, false, claim)
    this.#wait(line, claim)
    this.#serve(line)
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

  #lineOf (name, mode) {
    const lines = this.#lines[mode]
    let line = lines.get(name)
    if (line === undefined) {
      if (lines.size >= this.#mostLines) this.#tidy(lines)
      line = new Line(name, mode, frontOf(this.#engine, name), this.#local && this.#local.placeOf(name, mode))
      lines.set(name, line)
    }
    return line
  }

  /** Forgets lines that nobody uses. */
  #tidy (lines) {
    for (const [name, line] of lines) if (line.isIdle) lines.delete(name)
    this.#mostLines = Math.max(MOST_IDLE, 2 * lines.size)
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
   * Gets the lock, and runs the claims of a line under it. Never rejects.
   * @param {Claim} [claim] the first, if it does not wait yet
   */
  async #ask (line, isAttempt, claim) {
    this.#busy++
    let front, asking, batch, failure
    // Code that watches, such as a hook of async_hooks, may make requests meanwhile: those wait.
    line.isBeginning = true
    try {
      front = newGrant(line.front, line.sharesFront)
      const isFirst = take(front)
      if (isFirst) beginTask(front)
      const label = claim === undefined ? line.asker.label : claim.options.label
      const local = line.place && this.#local
      let grant = isFirst && local && local.takeNow(line.place, label, isAttempt)
      // An attempt is over if others of this process are first, or the engine has answered.
      const isOver = isAttempt && (!isFirst || (local && !local.isSlow))
      if (!grant && !isOver) {
        // Before the claim waits: a hook of async_hooks may make a request meanwhile.
        asking = line.asking = new AbortController()
        if (claim !== undefined) this.#wait(line, claim)
        claim = undefined
        line.isBeginning = false
        const { signal } = asking
        grant = isAttempt
          ? await this.#askEngine('attempt', line, signal)
          : await this.#acquire(line, front, isFirst, asking)
        if (signal.aborted && grant) await grant.release(grant.ownerDied)
        if (front.isStolen) throw stolenError(line.front)
        if (!grant && !isAttempt) throw new TypeError('its engine gave no grant')
      }
      if (grant && line.asking === asking) {
        line.asking = asking = undefined
        batch = line.batch = new Batch(line, front, grant, line.isAlone ? ONE : this.#limits, this.#scope, claim)
        claim = undefined
        line.isBeginning = false
        this.#serve(line)
        for (let step = batch.next(); step !== undefined; step = batch.next()) await step
        if (line.batch === batch) line.batch = undefined
      }
    } catch (error) {
      line.isBeginning = false
      failure = unavailableError(line.name, front !== undefined && front.isStolen ? stolenError(line.front) : error)
      if (batch !== undefined) await batch.fail(error)
      if (line.batch === batch) line.batch = undefined
    }
    // Unless all that wait have given up.
    const isWanted = line.asking === asking
    if (isWanted) line.asking = undefined
    if (front !== undefined) {
      endTask(front)
      front.end(false, true)
    }
    // Once the named lock in front is free, too: an attempt that follows must find both.
    if (batch !== undefined) batch.settle()
    if (isWanted) {
      if (failure !== undefined) line.reject(failure, claim)
      else if (isAttempt) await this.#decline(claim || line.shift())
      else this.#serve(line)
    }
    this.#end()
  }

  /** Asks the engine by one of its functions. */
  #askEngine (ask, { name, mode, asker }, signal) {
    return this.#scope.runInAsyncScope(() => this.#engine[ask](name, mode, signal, { ...asker, threadId }))
  }

  /** Waits for the lock: behind others of this process, then of all. */
  async #acquire (line, front, isFirst, asking) {
    const { signal } = asking
    const { name, place } = line
    const local = place && this.#local
    if (!isFirst) {
      const refused = await granted(front, { timeout: Infinity, signal }, {})
      if (refused !== undefined) throw refused.reason
      throwIfAborted(signal)
      beginTask(front)
      const grant = local && local.takeNow(place, line.asker.label, false)
      if (grant !== undefined) return grant
    }
    front.onStolen = () => asking.abort()
    const { asker, first } = line
    const end = watch(this.#engine, name, first, () => this.#holderOf(name))
    try {
      return await (local ? local.wait(place, asker.label, signal) : this.#askEngine('acquire', line, signal))
    } finally {
      end()
    }
  }

  /** Settles a request whose attempt was in vain. Never rejects. */
  async #decline (claim) {
    if (claim === undefined) return
    await undefined // its request has to return first
    try {
      claim.assertWanted()
      if (this.#closed !== undefined) throw this.#closed
      if (!claim.options.ifAvailable) return this.#rejectLate(claim)
      claim.resolve(await claim.call(claim.callback, null))
    } catch (error) {
      claim.reject(error)
    }
  }

  /** Rejects a request whose time is over, with the holder. Never rejects itself. */
  async #rejectLate (claim) {
    const { name, wholeTimeout } = claim.options
    claim.reject(timeoutError(name, wholeTimeout, await this.#holderOf(name)))
  }

  /** Returns the first holder; undefined if the engine does not tell it soon. */
  async #holderOf (name) {
    let timer
    const late = new Promise((resolve) => { timer = setTimeout(resolve, QUERY_MILLISECONDS) })
    try {
      const answer = await Promise.race([late, this.#query(name)])
      return answer === undefined ? undefined : obstacleIn(answer)
    } catch (_) {
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  async #query (name) {
    if (typeof this.#engine.query !== 'function') return { held: [] }
    const { held, pending } = await this.#scope.runInAsyncScope(() => this.#engine.query(name))
    const { HOST, checked, shorten } = require('./engines/holder')
    const named = name === undefined ? {} : { name: shorten(name) }
    const isOurs = ({ pid, host }) => pid === process.pid && [undefined, HOST].includes(host)
    // Those of an engine of somebody else may have anything in their fields.
    const list = (infos) => infos.map((info) => ({ isOurs: isOurs(info), ...info, ...checked(info), ...named }))
    return pending === undefined ? { held: list(held) } : { held: list(held), pending: list(pending) }
  }
}

module.exports = { ProcessLocks }
