'use strict'

/**
 * `AsyncLock`: a mutex in four bytes of shared memory, for any mix of threads.
 *
 * The word holds UNLOCKED or LOCKED and nothing else, so that code which locks it by Atomics.compareExchange, wait and
 * notify can share it. An uncontended lock is taken and released in JavaScript.
 */

const { assertStack } = require('../agent/find-agent')
const { define, load } = require('../util/intrinsics')
const { isMainThread, threadId } = require('../util/worker-threads')
const { nameOfOwner, notLocked } = require('../waiting/errors')
const { assertWorker, milliseconds, waitOptions } = require('../waiting/wait-options')
const { acquire, acquireAsync, acquireOrThrow } = require('../holding/acquire')
const { REPAIR, runHolding, runHoldingSync, runShortly } = require('../holding/run')
const { LOCK, LOCKED, UNLOCKED } = require('../holding/request')
const { UnlockToken, newHold } = require('../holding/hold')
const { wordOf } = require('../holding/view-word')
const { LOCK_SHAPE, defineOwner, defineView, expose, initView, newMemory } = require('../view')

const INDEX = 0

class AsyncLock {
  constructor (sab, options) {
    const { word } = initView(this, arguments.length === 0 ? newMemory() : sab, options, 'AsyncLock', LOCK_SHAPE)
    expose(this, 'sab', this.buffer)
    expose(this, 'i32a', word.array)
  }

  get locked () {
    return load(wordOf(this).array, INDEX) === LOCKED
  }

  lock (options) {
    const word = wordOf(this)
    const token = new UnlockToken()
    // The rest is apart: V8 inlines only so much, and this and `unlock` are to be part of a loop around them.
    return options === undefined && !isMainThread && word.list.takeFree(word, token) ? token
      : lock(word, token, options)
  }

  lockIfAvailable (timeout) {
    const t = timeoutOf(timeout)
    if (t > 0) assertWorker('lockIfAvailable with a timeout other than 0', 'lockAsync({ timeout })')
    const hold = newHold(wordOf(this), LOCK)
    return acquire(hold, t, 'lockIfAvailable') ? hold.token : null
  }

  tryLock () {
    const word = wordOf(this)
    const token = new UnlockToken()
    return word.list.takeFree(word, token) || word.take(LOCK, token) ? token : null
  }

  lockAsync (options) {
    return acquireAsync(this, LOCK, options, 'lockAsync')
  }

  executeLocked (callback, options) {
    const short = options === undefined ? runShortly(this, callback) : undefined
    return short === undefined ? runHolding(this, LOCK, callback, options, 'executeLocked') : short
  }

  executeLockedSync (callback, options) {
    return runHoldingSync(this, LOCK, callback, options, 'executeLockedSync', 'executeLocked()')
  }

  unlock () {
    const word = wordOf(this)
    if (!word.list.releaseLast(word)) unlock(word)
  }
}

function lock (word, token, options) {
  assertWorker('lock', 'lockAsync() or executeLocked()')
  return acquireOrThrow(newHold(word, LOCK, token), options, 'lock')
}

function unlock (word) {
  const index = word.find()
  if (index >= 0) {
    word.release(index, LOCK)
    word.list.door.open()
    return
  }
  assertStack()
  // If code that uses the bare word has locked it, its holder is unknown.
  const holder = word.unlockUnheld()
  if (holder === undefined) throw notLocked('unlock: the lock is not held')
  if (holder !== null) throw notLocked('unlock: the lock is held by ' + nameOf(holder))
  word.notifyHost()
}

function timeoutOf (given) {
  if (typeof given === 'object' && given !== null) return waitOptions(given, 'lockIfAvailable', false, 0).timeout
  return given === undefined ? 0 : milliseconds(given, 'lockIfAvailable')
}

function nameOf (holder) {
  if (holder === threadId) return 'a promise of this thread that has not settled yet'
  return 'thread ' + holder + ', not by this one'
}

defineOwner(AsyncLock, LOCKED)
define(AsyncLock, 'INDEX', INDEX, true)
define(AsyncLock, 'UNLOCKED', UNLOCKED, true)
define(AsyncLock, 'LOCKED', LOCKED, true)
defineView(AsyncLock, ['sab', 'i32a', REPAIR], ({ locked, owner, waiters }) => {
  return locked ? { locked, holder: owner === null ? 'unknown' : nameOfOwner(owner), waiters } : { locked, waiters }
})

module.exports = AsyncLock
