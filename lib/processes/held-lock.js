'use strict'

/** Locks that are held until `unlock()`. */

const { define } = require('../util/intrinsics')
const showState = require('../util/inspect')
const observer = require('../waiting/observer')

/** Lets `util.inspect` show the locks of a class. */
function showLock (Class) {
  showState(Class, ({ name, names, mode, token, tokens, permit, ownerDied, isLost }) => {
    if (names !== undefined) return { names, mode, tokens, ownerDied, isLost }
    return { name, mode, token, ...permit !== undefined && { permit }, ownerDied, isLost }
  })
}

class Held {
  #lock

  /** @param {object} lock the argument of a callback */
  constructor (lock) {
    this.#lock = lock
  }

  get name () { return this.#lock.name }
  get names () { return this.#lock.names }
  get mode () { return this.#lock.mode }
  get token () { return this.#lock.token }
  get tokens () { return this.#lock.tokens }
  get permit () { return this.#lock.permit }
  get ownerDied () { return this.#lock.ownerDied }
  get signal () { return this.#lock.signal }
  get isLost () { return this.#lock.isLost }

  /** Lets the next holder see `ownerDied`. False if it has been unlocked. */
  abandon () { return this.#lock.abandon() }
}
showLock(Held)

class HeldLock extends Held {
  #release
  #done

  /**
   * @param {() => void} release ends the callback
   * @param {Promise<void>} done the request's
   */
  constructor (lock, release, done) {
    super(lock)
    this.#release = release
    this.#done = done
  }

  /** Gives the lock back. Rejects with ERR_LOCK_LOST if it was not held until then. */
  async unlock () {
    this.#release()
    await this.#done
  }
}

/**
 * Holds what a request gives to its callback, until `unlock()`. Resolves with null if that is null.
 * @param {(callback: (lock: object | null) => unknown) => Promise<void>} begin calls back in a later job
 */
function held (begin) {
  let settle, done
  // It begins in no executor: reports have few frames for the stack of a call.
  const promise = new Promise((resolve, reject) => { settle = { resolve, reject } })
  try {
    done = begin((lock) => {
      if (lock === null) return settle.resolve(null)
      observer.keepsHold()
      return new Promise((resolve) => settle.resolve(new HeldLock(lock, resolve, done)))
    })
    done.catch(settle.reject)
  } catch (error) {
    settle.reject(error)
  }
  return promise
}

class HeldSyncLock extends Held {
  #release

  /** @param {() => void} release gives the lock back, at the first call; throws each time if it was lost */
  constructor (lock, release) {
    super(lock)
    this.#release = release
  }

  /** Gives the lock back. Throws ERR_LOCK_LOST if it was not held until then. */
  unlock () { this.#release() }
}

// Not on every Node.
const { asyncDispose, dispose } = Symbol
if (asyncDispose !== undefined) define(HeldLock.prototype, asyncDispose, HeldLock.prototype.unlock, false, true)
if (dispose !== undefined) define(HeldSyncLock.prototype, dispose, HeldSyncLock.prototype.unlock, false, true)

module.exports = { HeldSyncLock, held, showLock }
