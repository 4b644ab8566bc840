'use strict'

/**
 * `AsyncLock`: a mutex in four bytes of shared memory, for any mix of threads.
 *
 * The word holds UNLOCKED or LOCKED and nothing else, so that code which locks it by means of Atomics.compareExchange, wait
 * and notify can share it. Taking a free lock, and giving up one that nobody waits for, happen in JavaScript; who waits, who
 * holds and who died is known to the native side (src/line.rs has the rules, holdings.js the table of what a thread holds).
 */

const util = require('util')
const { define, load, shield } = require('../intrinsics')
const { agent } = require('../settle')
const { threads } = require('../worker-threads')
const { acquire, acquireAsync, block, requireWorker, runHolding } = require('./acquire')
const { FREE, LOCK, LOCKED, UNLOCKED } = require('./holdings')
const { becomeWord } = require('./shared-words')
const { demand, giveLock, lockToken, notLocked, notifyHost } = require('./token')
const { milliseconds, timeoutError, waitOptions } = require('./wait-options')
const { wordOf } = require('./word-of')

const INDEX = 0
const LATE = 'The lock was not to be had'

class AsyncLock {
  constructor (sab, options) {
    const array = becomeWord(this, sab, options, 'AsyncLock')
    this.sab = sab
    this.i32a = array
  }

  get locked () {
    return load(wordOf(this).array, INDEX) === LOCKED
  }

  lock (options) {
    requireWorker('lock', 'lockAsync() or executeLocked()')
    const word = wordOf(this)
    // Not by acquireOrThrow: what is called in between would add a tenth to what a free lock costs.
    const timeout = options === undefined ? Infinity : waitOptions(options, 'lock', false).timeout
    const place = word.takeLock()
    return place < 0 ? blockForLock(word, timeout) : lockToken(word, place)
  }

  lockIfAvailable (timeout) {
    const t = timeoutOf(timeout)
    if (t > 0) requireWorker('lockIfAvailable with a timeout other than 0', 'lockAsync({ timeout })')
    const asked = demand(wordOf(this), LOCK)
    return acquire(asked, t, 'lockIfAvailable') ? asked.token : null
  }

  tryLock () {
    const word = wordOf(this)
    const place = word.takeLock()
    return place < 0 ? null : lockToken(word, place)
  }

  lockAsync (options) {
    return acquireAsync(() => demand(wordOf(this), LOCK), options, 'lockAsync', LATE)
  }

  executeLocked (callback, options) {
    return runHolding(() => demand(wordOf(this), LOCK), callback, options, 'executeLocked', LATE)
  }

  unlock () {
    const word = wordOf(this)
    const place = word.find()
    if (place >= 0) {
      giveLock(word, place)
      return
    }
    // If it was locked by code that uses the bare word, it cannot be told whose it is.
    const holder = word.free()
    if (holder === FREE) throw notLocked('unlock: the lock is not held')
    if (holder !== null) throw notLocked('unlock: the lock is held by ' + nameOf(holder))
    notifyHost(word)
  }

  [util.inspect.custom] (depth, options) {
    const word = wordOf(this)
    const { locked } = this
    const state = { locked }
    if (locked) {
      const holder = word.holder()
      state.holder = holder === null ? 'unknown' : 'thread ' + holder
    }
    state.waiters = agent().waiterCount(word.address)
    return this.constructor.name + ' ' + util.inspect(state, options)
  }
}

/** How long `lockIfAvailable` waits: a number says so, or an object with it. */
function timeoutOf (given) {
  if (typeof given === 'object' && given !== null) return waitOptions(given, 'lockIfAvailable', false, 0).timeout
  return given === undefined ? 0 : milliseconds(given, 'lockIfAvailable')
}

/** The thread that holds a lock, for a message of one that does not. */
function nameOf (threadId) {
  const own = threads === undefined ? 0 : threads.threadId
  return threadId === own ? 'a promise of this thread, which has not been told yet' : 'thread ' + threadId + ', not by this one'
}

function blockForLock (word, timeout) {
  const asked = demand(word, LOCK)
  if (!block(asked, timeout, 'lock')) throw timeoutError(LATE, timeout)
  return asked.token
}

shield(AsyncLock, ['sab', 'i32a'])
define(AsyncLock, 'INDEX', INDEX, true)
define(AsyncLock, 'UNLOCKED', UNLOCKED, true)
define(AsyncLock, 'LOCKED', LOCKED, true)
define(AsyncLock, 'byteLength', 4, true)

module.exports = AsyncLock
