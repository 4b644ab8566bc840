'use strict'

/**
 * A word of memory that several processes share. Native code takes and releases it: it knows the other processes.
 *
 * A free lock is taken, and released if nobody waits, in JavaScript. Its record (core/src/mapped/words/) is the truth:
 * the process in `owner` has the lock, and if it dies, another one frees it. So `owner` changes by one atomic
 * operation, and no function is called between that and the robust list. The word itself follows; so others free it
 * before they free `owner`. Whether somebody died with it is asked by who has it: before, another one may still die.
 *
 * Its counter of waiters is raised for ever (`prepare` in the native library), so that whatever else releases a word
 * here, or notifies at it, makes its native call.
 */

const { Int32Array, TypeError, compareExchange, load, store } = require('../util/intrinsics')
const { agent } = require('../agent/find-agent')
const { ADDRESS, COUNT, FENCED, HELD, RELEASING } = require('../agent/registers')
const { createError, nameOfOwner, notLocked } = require('../waiting/errors')
const { Entries, channel, first, holds } = require('./entries')
const { takeInLine } = require('./hold')
const { INDEX, LOCK, LOCKED, SERIAL, UNLOCKED } = require('./request')
const list = require('./the-list')()

const { binding, floats, operations, words } = agent().native
const { door } = list
/** As in entries.js. Of another copy's list, this one knows no constants: there the way is closed. */
const { entries, held, serials } = first
const isOwn = list.first === first

/** The fields of a record, in units of four bytes. WAITING and TURN have twice as many. */
const [OWNER, DIED, WAITING, TURN, NOTIFIES] = [2, 3, 4, 6, 9]
const NOBODY = 0

const short = {
  __proto__: null,
  door,

  get tasks () {
    return list.tasks
  },

  /** As `takeFree` of entries.js. */
  takeFree (word, token) {
    const { array, record } = word
    if (channel.hasSubscribers || !isOpen(array, record)) return false
    const index = words[HELD]
    const serial = list.serial + 1
    if (!isOwn || index >= list.shortRoom || serial > list.lastFree) return false
    list.serial = serial
    entries[2 * index] = word.address
    entries[2 * index + 1] = LOCK
    serials[index] = serial
    if (compareExchange(record, OWNER, NOBODY, word.owning) !== NOBODY) {
      serials[index] = 0
      return false
    }
    // At the next call the engine may end the thread: then this is in the list.
    words[HELD] = index + 1
    held[index] = word
    if (compareExchange(array, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
      // Code that uses the bare word has it.
      store(record, OWNER, NOBODY)
      words[HELD] = index
      serials[index] = 0
      held[index] = undefined
      return false
    }
    token[INDEX] = index
    token[SERIAL] = serial
    try {
      if (record[DIED] !== 0) word.takeNoteOfDeath(LOCK, token)
    } catch (_) {
      // No stack is left: see `take` of word.js.
    }
    return true
  },

  /** As `releaseLast` of entries.js. */
  releaseLast (word) {
    const { address, record } = word
    const last = words[HELD] - 1
    if (entries[2 * last] !== address || isAwaited(record) || holds.count !== 0 || door.isDue) return false
    floats[RELEASING] = address
    word.array[0] = UNLOCKED
    store(record, OWNER, NOBODY)
    words[HELD] = last
    serials[last] = 0
    held[last] = undefined
    try {
      // A process that waits has said so before it looked at the owner for the last time.
      if (isAwaited(record)) {
        floats[ADDRESS] = address
        operations.released()
      }
    } finally {
      floats[RELEASING] = 0
    }
    return true
  },

  releaseToken: Entries.prototype.releaseToken
}

/** Whether nobody has it, and it is no other process's turn. */
const isOpen = (array, record) => (
  array[0] === UNLOCKED && record[OWNER] === NOBODY && (record[TURN] | record[TURN + 1]) === 0)

const isAwaited = FENCED
  ? record => (record[WAITING] | record[WAITING + 1] | record[NOTIFIES]) !== 0
  : record => (load(record, WAITING) | load(record, WAITING + 1) | load(record, NOTIFIES)) !== 0

/** Makes the class, a kind of `Word`. */
module.exports = (Word) => class SharedWord extends Word {
  constructor (array, address) {
    super(array, address, false)
    this.record = undefined
    // What `owner` is while this process has the lock.
    this.owning = 0
  }

  get list () {
    return short
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
      throw createError(owner + ' does not work on memory that several processes share: AsyncLock, RwLock, Semaphore ' +
        'with permits, and Latch do', 'ERR_SHARED_MEMORY_CLASS', undefined, TypeError)
    }
    const record = binding.shareWord(this.address)
    if (record === null) {
      throw createError(owner + ': the shared memory has no room for another lock or awaited word',
        'ERR_SHARED_MEMORY_FULL')
    }
    this.owning = floats[COUNT]
    this.record = new Int32Array(record)
  }

  /** Whether it can be taken, and nobody awaits it. */
  get isFree () {
    const { array, record } = this
    return isOpen(array, record) && record[DIED] === 0 && !isAwaited(record)
  }

  take (request, token, isQuiet) {
    if (request === LOCK && !isQuiet && short.takeFree(this, token)) return true
    return takeInLine(this, request, token, isQuiet)
  }

  takeForPromise (request, token, isQuiet) {
    return takeInLine(this, request, token, isQuiet)
  }

  release (index, request, inJob) {
    if (request === LOCK && index === words[HELD] - 1 && short.releaseLast(this)) return true
    return super.release(index, request, inJob)
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
