'use strict'

/**
 * `RwLock`: many readers or one writer, in four bytes of shared memory.
 *
 * The word holds the number of readers, or WRITING. No waiter is overtaken: a waiting writer stops new readers, and
 * readers that wait behind it enter together.
 */

const { load, max } = require('../util/intrinsics')
const { assertWorker } = require('../waiting/wait-options')
const { acquireAsync, acquireOrThrow } = require('../holding/acquire')
const { REPAIR, runHolding, runHoldingSync } = require('../holding/run')
const { EXCLUSIVE, SHARED, WRITING } = require('../holding/request')
const { newHold, takeToken } = require('../holding/hold')
const { wordOf } = require('../holding/view-word')
const { LOCK_SHAPE, defineOwner, defineView, initView, newMemory } = require('../view')

class RwLock {
  constructor (buffer, options) {
    initView(this, arguments.length === 0 ? newMemory() : buffer, options, 'RwLock', LOCK_SHAPE)
  }

  get locked () {
    return load(wordOf(this).array, 0) === WRITING
  }

  get readers () {
    return max(0, load(wordOf(this).array, 0))
  }

  lock (options) {
    assertWorker('lock', 'lockAsync() or executeLocked()')
    return acquireOrThrow(newHold(wordOf(this), EXCLUSIVE), options, 'lock')
  }

  lockShared (options) {
    assertWorker('lockShared', 'lockSharedAsync() or executeShared()')
    return acquireOrThrow(newHold(wordOf(this), SHARED), options, 'lockShared')
  }

  tryLock () {
    return takeToken(wordOf(this), EXCLUSIVE)
  }

  tryLockShared () {
    return takeToken(wordOf(this), SHARED)
  }

  lockAsync (options) {
    return acquireAsync(this, EXCLUSIVE, options, 'lockAsync')
  }

  lockSharedAsync (options) {
    return acquireAsync(this, SHARED, options, 'lockSharedAsync')
  }

  executeLocked (callback, options) {
    return runHolding(this, EXCLUSIVE, callback, options, 'executeLocked')
  }

  executeShared (callback, options) {
    return runHolding(this, SHARED, callback, options, 'executeShared')
  }

  executeLockedSync (callback, options) {
    return runHoldingSync(this, EXCLUSIVE, callback, options, 'executeLockedSync', 'executeLocked()')
  }

  executeSharedSync (callback, options) {
    return runHoldingSync(this, SHARED, callback, options, 'executeSharedSync', 'executeShared()')
  }
}

defineOwner(RwLock, WRITING)
defineView(RwLock, [REPAIR], ({ locked, readers, waiters }) => ({ locked, readers, waiters }))

module.exports = RwLock
