'use strict'

/**
 * `RwLock`: many readers or one writer, in four bytes of shared memory.
 *
 * The word holds the number of readers, or WRITING. Nobody overtakes: a waiting writer stops new readers, and readers that
 * wait behind it enter together.
 */

const util = require('util')
const { agent } = require('../settle')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./acquire')
const { EXCLUSIVE, NOT_HELD, SHARED, WORD, WRITING } = require('./holdings')
const sharedWords = require('./shared-words')
const { UnlockToken, emptyToken, notLocked, placeOf } = require('./token')

const LATE = 'The lock was not to be had'

/** That this thread writes. */
class ExclusiveToken extends UnlockToken {
  /**
   * Lets readers in and goes on as one of them, without anybody writing in between.
   * @returns {UnlockToken} the token of a reader; this one is no longer locked
   */
  downgrade () {
    const place = placeOf(this)
    if (place < 0) throw notLocked('downgrade: the token is not locked any more')
    const shared = emptyToken(this[WORD], SHARED)
    this[WORD].downgrade(place, this.ownerDied, shared)
    return shared
  }
}

class RwLock {
  constructor (buffer, options) {
    const array = sharedWords(buffer, options, 'RwLock')
    this.buffer = buffer
    this.byteOffset = array.byteOffset
    Object.defineProperty(this, WORD, { value: agent().holdings.wordOf(array) })
  }

  /** Whether somebody writes. */
  get locked () {
    return Atomics.load(this[WORD].array, 0) === WRITING
  }

  /** How many read. */
  get readers () {
    return Math.max(0, Atomics.load(this[WORD].array, 0))
  }

  lock (options) {
    requireWorker('lock', 'lockAsync() or executeLocked()')
    return acquireOrThrow(exclusive(this), options, 'lock', LATE)
  }

  lockShared (options) {
    requireWorker('lockShared', 'lockSharedAsync() or executeShared()')
    return acquireOrThrow(shared(this), options, 'lockShared', LATE)
  }

  tryLock () {
    const token = exclusive(this)
    return token[WORD].take(token) ? token : null
  }

  tryLockShared () {
    const token = shared(this)
    return token[WORD].take(token) ? token : null
  }

  lockAsync (options) {
    return acquireAsync(exclusive(this), options, 'lockAsync', LATE)
  }

  lockSharedAsync (options) {
    return acquireAsync(shared(this), options, 'lockSharedAsync', LATE)
  }

  executeLocked (callback, options) {
    return runHolding(exclusive(this), callback, options, 'executeLocked', LATE)
  }

  executeShared (callback, options) {
    return runHolding(shared(this), callback, options, 'executeShared', LATE)
  }

  [util.inspect.custom] (depth, options) {
    const { locked, readers } = this
    const waiters = agent().waiterCount(this[WORD].address)
    return this.constructor.name + ' ' + util.inspect({ locked, readers, waiters }, options)
  }
}

Object.defineProperty(RwLock, 'byteLength', { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true })

const exclusive = (lock) => new ExclusiveToken(lock[WORD], EXCLUSIVE, 0, NOT_HELD, false)
const shared = (lock) => emptyToken(lock[WORD], SHARED)

module.exports = RwLock
