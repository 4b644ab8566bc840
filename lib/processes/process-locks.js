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
 */

const { AsyncResource } = require('async_hooks')
const { threadId } = require('../util/worker-threads')
const { load } = require('../lazy')
const { clearTimeout, setImmediate, setTimeout } = require('../util/timers')
const { assertFunction } = require('../waiting/wait-options')
const { throwIfAborted } = require('../waiting/errors')
const { Batch } = require('./batch')
const { Claim, Line } = require('./engine-claim')
const { closedError, obstacleIn, timeoutError, unavailableError } = require('./errors')
const { HeldLock } = require('./held-lock')
const { frontOf, watch } = require('./long-wait')
const { assertEngine, readLocksOptions, readOptions } = require('./arguments')
const { requestSync } = require('./request-sync')

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** How long the error of a timeout waits for its holder. */
const QUERY_MILLISECONDS = 1000

class ProcessLocks {
  #engine
  #limits
  #label
  #lines = new Map()
  /** What makes the claims that wait give up. */
  #leave = new Set()
  #asked = new Set()
  #closed
  /** The engine works in no request's asynchronous context. */
  #scope = new AsyncResource('atomics-waitasync.ProcessLocks')

  constructor (engine, options) {
    assertEngine(engine)
    const { batch, batchTime, label } = readLocksOptions(options)
    this.#engine = engine
    this.#limits = { most: batch, milliseconds: batchTime }
    this.#label = label
  }

  /** Calls `callback(lock)` with the lock of a name. `request(name, [options], callback)`. */
  request (name, options, callback) {
    return new Promise((resolve, reject) => {
      const given = arguments.length < 3 && typeof options === 'function' ? [undefined, options] : [options, callback]
      const read = readOptions(name, given[0], 'request', this.#engine, this.#label)
      assertFunction(given[1], 'request')
      this.#begin(read, given[1], resolve, reject)
    })
  }

  /** Holds the lock of a name until its `unlock()`. Null if it is not available. */
  hold (name, options) {
    return new Promise((resolve, reject) => {
      const read = readOptions(name, options, 'hold', this.#engine, this.#label)
      const done = new Promise((fulfil, fail) => {
        const callback = (lock) => {
          if (lock === null) return resolve(null)
          return new Promise((release) => resolve(new HeldLock(lock, release, done)))
        }
        this.#begin(read, callback, fulfil, fail)
      })
      done.catch(reject)
    })
  }

  /** Blocks this thread. `requestSync(name, [options], callback)`. */
  requestSync (name, options, callback) {
    const given = arguments.length < 3 && typeof options === 'function' ? [undefined, options] : [options, callback]
    const read = readOptions(name, given[0], 'requestSync', this.#engine, this.#label)
    assertFunction(given[1], 'requestSync')
    if (this.#closed !== undefined) throw this.#closed
    return requestSync(this.#engine, read, given[1])
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
    while (this.#asked.size > 0) await Promise.all(this.#asked)
    await this.#engine.close()
  }

  /**
   * Begins a request, whose promise will be settled; or throws. If it gives up, its promise rejects in a later turn:
   * once the named lock in front is free, so that a request that follows finds it so.
   */
  #begin (options, callback, resolve, reject) {
    const { name, mode, signal, timeout, ifAvailable } = options
    if (this.#closed !== undefined) throw this.#closed
    throwIfAborted(signal)
    const claim = new Claim(options, callback, resolve, reject)
    const isAttempt = ifAvailable || timeout === 0
    const line = isAttempt ? new Line(name, mode) : this.#lineOf(name, mode)
    const leave = () => {
      claim.giveUp()
      line.claims.delete(claim)
      if (line.claims.size === 0) this.#stopAsking(line, isAttempt)
    }
    const giveUp = (reason) => {
      leave()
      this.#track(turn().then(() => reject(reason)))
    }
    const late = () => {
      leave()
      this.#track(turn().then(() => this.#rejectLate(claim)))
    }
    claim.wait(giveUp, late, () => this.#leave.delete(giveUp))
    this.#leave.add(giveUp)
    line.claims.add(claim)
    this.#scope.runInAsyncScope(() => {
      if (isAttempt) this.#track(this.#attempt(line, claim))
      else this.#serve(line)
    })
  }

  #track (promise) {
    const done = promise.finally(() => this.#asked.delete(done))
    this.#asked.add(done)
  }

  #lineOf (name, mode) {
    const key = mode + ' ' + name
    let line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, line = new Line(name, mode))
    return line
  }

  /** Sees to it that a lock is asked for if claims wait. */
  #serve (line) {
    if (line.mode === 'shared' && line.batch !== undefined) line.batch.join()
    if (line.asking !== undefined || (line.mode === 'exclusive' && line.batch !== undefined)) return
    if (line.claims.size === 0) return this.#forget(line)
    line.asking = new AbortController()
    this.#track(this.#ask(line, line.asking))
  }

  #forget (line) {
    const key = line.mode + ' ' + line.name
    if (line.batch === undefined && this.#lines.get(key) === line) this.#lines.delete(key)
  }

  #stopAsking (line, isAttempt) {
    const { asking } = line
    if (asking === undefined) return
    line.asking = undefined
    asking.abort()
    if (!isAttempt) this.#serve(line)
  }

  #front ({ name, mode }, options, callback) {
    return load('locks').request(frontOf(this.#engine, name), { mode, ...options }, callback)
  }

  /** Gets the lock and runs a batch. Never rejects. */
  async #ask (line, asking) {
    const { name } = line
    const { signal } = asking
    try {
      const batch = await this.#front(line, { signal }, async () => {
        const grant = await this.#acquire(line, signal)
        if (!signal.aborted) return this.#run(line, grant)
        await grant.release(grant.ownerDied)
      })
      // Once the named lock in front is free, too: an attempt that follows must find both.
      if (batch !== undefined) batch.settle()
    } catch (error) {
      if (signal.aborted) return
      line.asking = undefined
      const unavailable = unavailableError(name, error)
      for (let claim = line.shift(); claim !== undefined; claim = line.shift()) claim.reject(unavailable)
    }
    this.#serve(line)
  }

  async #acquire (line, signal) {
    const { name, mode, label } = line
    const end = watch(this.#engine, name, line.first, () => this.#holderOf(name))
    try {
      return await this.#engine.acquire(name, mode, signal, { label, threadId })
    } finally {
      end()
    }
  }

  /** Runs a batch under a lock, and gives the lock back. Never rejects. */
  async #run (line, grant) {
    const batch = new Batch(line, grant, this.#limits)
    line.batch = batch
    line.asking = undefined
    this.#serve(line)
    await batch.run()
    if (line.batch === batch) line.batch = undefined
    return batch
  }

  /** Makes one attempt, for a line of one claim. Never rejects. */
  async #attempt (line, claim) {
    const { name, mode } = line
    const { signal } = line.asking = new AbortController()
    try {
      const ended = await this.#front(line, { ifAvailable: true }, async (front) => {
        if (front === null) return
        const info = { label: claim.options.label, threadId }
        const grant = await this.#engine.attempt(name, mode, signal, info)
        line.asking = undefined
        if (grant === undefined) return
        if (claim.isOver) {
          await grant.release(grant.ownerDied)
          return
        }
        const batch = new Batch(line, grant, { most: 1, milliseconds: 0 })
        if (mode === 'shared') batch.join()
        await batch.run()
        return batch
      })
      if (ended !== undefined) ended.settle()
      line.asking = undefined
      if (claim.isOver) return
      // It may have been lost before it was given.
      line.shift()
      if (claim.options.ifAvailable) claim.resolve(await claim.call(claim.callback, null))
      else await this.#rejectLate(claim)
    } catch (error) {
      if (claim.hasGivenUp) return
      const hasBegun = claim.isOver
      claim.end()
      claim.reject(hasBegun ? error : unavailableError(name, error))
    }
  }

  /** Rejects a request whose time is over, with the holder. Never rejects itself. */
  async #rejectLate (claim) {
    const { name, timeout } = claim.options
    claim.reject(timeoutError(name, timeout, await this.#holderOf(name)))
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
