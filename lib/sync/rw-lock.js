'use strict'

/**
 * `RwLock`: many readers or one writer, in four bytes of shared memory.
 *
 * The word holds the number of readers, or WRITING. Nobody overtakes: a waiting writer stops new readers, and readers that
 * wait behind it enter together.
 */

const util = require('util')
const { define, load, max, shield } = require('../intrinsics')
const { agent } = require('../settle')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./acquire')
const { EXCLUSIVE, SHARED, WRITING } = require('./holdings')
const { becomeView } = require('./shared-words')
const { UnlockToken, demand, demandOf, notLocked, tryTake } = require('./token')
const { wordOf } = require('./word-of')

const LATE = 'The lock was not to be had'

/** That this thread writes. */
class ExclusiveToken extends UnlockToken {
  // Older engines hand the arguments of a constructor that is not written out on by an iterator, which may have been replaced.
  constructor () {
    super()
  }

  /**
   * Lets readers in and goes on as one of them, without anybody writing in between.
   * @returns {UnlockToken} the token of a reader; this one is no longer locked
   */
  downgrade () {
    const held = demandOf(this)
    if (held === undefined || held.request !== EXCLUSIVE) throw notLocked('downgrade: the token is not locked any more')
    const asked = demand(held.word, SHARED)
    held.word.downgrade(held.place, this.ownerDied, asked)
    return asked.token
  }
}

class RwLock {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'RwLock')
  }

  /** Whether somebody writes. */
  get locked () {
    return load(wordOf(this).array, 0) === WRITING
  }

  /** How many read. */
  get readers () {
    return max(0, load(wordOf(this).array, 0))
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
    return tryTake(wordOf(this), EXCLUSIVE, new ExclusiveToken())
  }

  tryLockShared () {
    return tryTake(wordOf(this), SHARED, new UnlockToken())
  }

  lockAsync (options) {
    return acquireAsync(() => exclusive(this), options, 'lockAsync', LATE)
  }

  lockSharedAsync (options) {
    return acquireAsync(() => shared(this), options, 'lockSharedAsync', LATE)
  }

  executeLocked (callback, options) {
    return runHolding(() => exclusive(this), callback, options, 'executeLocked', LATE)
  }

  executeShared (callback, options) {
    return runHolding(() => shared(this), callback, options, 'executeShared', LATE)
  }

  [util.inspect.custom] (depth, options) {
    const { locked, readers } = this
    const waiters = agent().waiterCount(wordOf(this).address)
    return this.constructor.name + ' ' + util.inspect({ locked, readers, waiters }, options)
  }
}

shield(RwLock, ['buffer', 'byteOffset'])
define(RwLock, 'byteLength', 4, true)

const exclusive = (lock) => demand(wordOf(lock), EXCLUSIVE, new ExclusiveToken())
const shared = (lock) => demand(wordOf(lock), SHARED)

module.exports = RwLock
