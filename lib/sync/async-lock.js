'use strict'

/**
 * `AsyncLock`: a mutex in four bytes of shared memory, for any mix of threads.
 *
 * The word holds UNLOCKED or LOCKED and nothing else, so that code which locks it by means of Atomics.compareExchange, wait
 * and notify can share it. Taking a free lock, and giving up one that nobody waits for, happen in JavaScript; who waits, who
 * holds and who died is known to the native side (src/line.rs has the rules, holdings.js the table of what a thread holds).
 */

const util = require('util')
const { ToTimeout } = require('../abstract-operations')
const { agent } = require('../settle')
const { acquire, acquireAsync, block, requireWorker, runHolding } = require('./acquire')
const { LOCK, LOCKED, UNLOCKED, WORD } = require('./holdings')
const sharedWords = require('./shared-words')
const { UnlockToken, emptyToken, giveLock, notLocked, notifyHost } = require('./token')
const { timeoutError, waitOptions } = require('./wait-options')

const INDEX = 0
const LATE = 'The lock was not to be had'

class AsyncLock {
  constructor (sab, options) {
    const array = sharedWords(sab, options, 'AsyncLock')
    this.sab = sab
    this.i32a = array
    Object.defineProperty(this, WORD, { value: agent().holdings.wordOf(array) })
  }

  get locked () {
    return Atomics.load(this[WORD].array, INDEX) === LOCKED
  }

  lock (options) {
    requireWorker('lock', 'lockAsync() or executeLocked()')
    const word = this[WORD]
    // Not by acquireOrThrow: what is called in between would add a tenth to what a free lock costs.
    const timeout = options === undefined ? Infinity : waitOptions(options, 'lock', false).timeout
    const place = word.takeLock()
    return place < 0 ? blockForLock(word, timeout) : tokenAt(word, place)
  }

  lockIfAvailable (timeout) {
    const t = timeout === undefined ? 0 : ToTimeout(timeout)
    if (t > 0) requireWorker('lockIfAvailable with a timeout other than 0', 'lockAsync({ timeout })')
    const token = emptyToken(this[WORD], LOCK)
    return acquire(token, t, 'lockIfAvailable') ? token : null
  }

  tryLock () {
    const word = this[WORD]
    const place = word.takeLock()
    return place < 0 ? null : tokenAt(word, place)
  }

  lockAsync (options) {
    return acquireAsync(emptyToken(this[WORD], LOCK), options, 'lockAsync', LATE)
  }

  executeLocked (callback, options) {
    return runHolding(emptyToken(this[WORD], LOCK), callback, options, 'executeLocked', LATE)
  }

  unlock () {
    const word = this[WORD]
    const place = word.find()
    if (place >= 0) {
      giveLock(word, place)
      return
    }
    if (!this.locked) throw notLocked('unlock: the lock is not held')
    const holder = word.holder()
    if (holder !== null) throw notLocked('unlock: the lock is held by thread ' + holder + ', not by this one')
    // Locked by code that uses the bare word: it cannot be told whose it is.
    word.free()
    notifyHost(word)
  }

  [util.inspect.custom] (depth, options) {
    const word = this[WORD]
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

/** The token of a lock that has just been taken; its entry is at `place` of the table of holdings. */
function tokenAt (word, place) {
  return new UnlockToken(word, LOCK, place, word.serialAt(place), word.inherits(LOCK))
}

function blockForLock (word, timeout) {
  const token = emptyToken(word, LOCK)
  if (!block(token, timeout, 'lock')) throw timeoutError(LATE, timeout)
  return token
}

Object.defineProperties(AsyncLock, {
  INDEX: { value: INDEX, enumerable: true },
  UNLOCKED: { value: UNLOCKED, enumerable: true },
  LOCKED: { value: LOCKED, enumerable: true },
  byteLength: { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true }
})

module.exports = AsyncLock
