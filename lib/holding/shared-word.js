'use strict'

/**
 * A word of memory that several processes share. Native code takes and releases it: it knows the other processes.
 *
 * Its counter of waiters is raised for ever (`prepare` in the native library), so that whatever releases a word here,
 * or notifies at it, makes its native call, also the short way.
 */

const { Error, TypeError, define } = require('../util/intrinsics')
const { agent } = require('../agent/find-agent')
const { ADDRESS } = require('../agent/registers')
const { nameOfOwner, notLocked } = require('../waiting/errors')
const { takeInLine } = require('./location')
const theList = require('./the-list')

const { binding, floats, operations } = agent().native

/** What the short way needs of a list. It is never open. */
const closed = {
  __proto__: null,
  door: theList().door,
  takeFree: () => false,
  releaseLast: () => false
}

/** Makes the class, a kind of `Word`. */
module.exports = (Word) => class SharedWord extends Word {
  get list () {
    return closed
  }

  get isShared () {
    return true
  }

  /**
   * Admits an instance of a class.
   * @throws {TypeError} with code ERR_SHARED_MEMORY_CLASS: the class does not work here
   * @throws {Error} with code ERR_SHARED_MEMORY_FULL: there are too many locks in the file
   */
  admit (owner, isAble) {
    if (!isAble) {
      throw coded(new TypeError(owner + ' does not work on memory that several processes share: AsyncLock, RwLock, ' +
        'Semaphore with permits, and Latch do'), 'ERR_SHARED_MEMORY_CLASS')
    }
    if (!binding.shareWord(this.address)) {
      throw coded(new Error(owner + ': the shared memory has no room for another lock or awaited word'),
        'ERR_SHARED_MEMORY_FULL')
    }
  }

  get isFree () {
    return false
  }

  take (request, token, isQuiet) {
    return takeInLine(this, request, token, isQuiet)
  }

  takeForPromise (request, token, isQuiet) {
    return takeInLine(this, request, token, isQuiet)
  }

  becomeReaders () {
    floats[ADDRESS] = this.address
    operations.downgrade()
  }

  /** As of any word; of another process only its pid is known, and null if it is in another PID namespace. */
  owner () {
    const own = super.owner()
    if (own !== null) return own
    const pid = binding.ownerOf(this.address)
    return pid === null ? null : { pid: pid === 0 ? null : pid, threadId: null }
  }

  unlockUnheld () {
    const owner = this.owner()
    if (owner !== null && owner.threadId === null) {
      throw notLocked('unlock: the lock is held by ' + nameOfOwner(owner) + ', not by this thread')
    }
    return super.unlockUnheld()
  }
}

function coded (error, code) {
  define(error, 'code', code, true, true)
  return error
}
