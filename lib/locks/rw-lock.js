'use strict'

/**
 * `RwLock`: many readers or one writer, in four bytes of shared memory.
 *
 * The word holds the number of readers, or WRITING. No waiter is overtaken: a waiting writer stops new readers, and readers that
 * wait behind it enter together.
 */

const { load, max } = require('../util/intrinsics')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./internal/acquire')
const { notLocked } = require('./internal/errors')
const { EXCLUSIVE, SHARED, WRITING } = require('./internal/request')
const runHoldingSync = require('./internal/run-sync')
const { UnlockToken, holdOf, newHold, tryTake } = require('./internal/token')
const { becomeView, defineView, waitersOf, wordOf } = require('./internal/view')

/** The token of a writer. */
class ExclusiveToken extends UnlockToken {
  // Written out: older engines pass the arguments of an implicit constructor by an iterator, which may have been replaced.
  constructor () {
    super()
  }

  /**
   * Becomes a reader, with no other writer in between.
   * @returns {UnlockToken} the token of a reader; this one is no longer locked
   */
  downgrade () {
    const held = holdOf(this)
    if (held === undefined || held.request !== EXCLUSIVE) throw notLocked('downgrade: the token is not locked any more')
    const hold = newHold(held.word, SHARED)
    held.word.downgrade(held.index, this.ownerDied, hold)
    return hold.token
  }
}

class RwLock {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'RwLock')
  }

  /** Whether there is a writer. */
  get locked () {
    return load(wordOf(this).array, 0) === WRITING
  }

  /** The number of readers. */
  get readers () {
    return max(0, load(wordOf(this).array, 0))
  }

  /** The `threadId` of the writer; null if there is none. */
  get holder () {
    const word = wordOf(this)
    const isWriting = () => load(word.array, 0) === WRITING
    const holder = isWriting() ? word.holder() : null
    // It may have become a reader meanwhile.
    return isWriting() ? holder : null
  }

  get waiters () {
    return waitersOf(this)
  }

  lock (options) {
    requireWorker('lock', 'lockAsync() or executeLocked()')
    return acquireOrThrow(exclusive(this), options, 'lock')
  }

  lockShared (options) {
    requireWorker('lockShared', 'lockSharedAsync() or executeShared()')
    return acquireOrThrow(shared(this), options, 'lockShared')
  }

  tryLock () {
    return tryTake(wordOf(this), EXCLUSIVE, new ExclusiveToken())
  }

  tryLockShared () {
    return tryTake(wordOf(this), SHARED, new UnlockToken())
  }

  lockAsync (options) {
    return acquireAsync(() => exclusive(this), options, 'lockAsync')
  }

  lockSharedAsync (options) {
    return acquireAsync(() => shared(this), options, 'lockSharedAsync')
  }

  executeLocked (callback, options) {
    return runHolding(() => exclusive(this), callback, options, 'executeLocked')
  }

  executeShared (callback, options) {
    return runHolding(() => shared(this), callback, options, 'executeShared')
  }

  executeLockedSync (callback, options) {
    requireWorker('executeLockedSync', 'executeLocked()')
    return runHoldingSync(exclusive(this), callback, options, 'executeLockedSync', 'executeLocked()')
  }

  executeSharedSync (callback, options) {
    requireWorker('executeSharedSync', 'executeShared()')
    return runHoldingSync(shared(this), callback, options, 'executeSharedSync', 'executeShared()')
  }
}

const exclusive = (lock) => newHold(wordOf(lock), EXCLUSIVE, new ExclusiveToken())
const shared = (lock) => newHold(wordOf(lock), SHARED)

defineView(RwLock, ['buffer', 'byteOffset'], ({ locked, readers, waiters }) => ({ locked, readers, waiters }))

module.exports = RwLock
