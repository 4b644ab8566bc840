'use strict'

/** Locks that are held until `unlock()`. */

const { define } = require('../util/intrinsics')

class Held {
  #lock

  /** @param {object} lock the argument of a callback */
  constructor (lock) {
    this.#lock = lock
  }

  get name () { return this.#lock.name }
  get mode () { return this.#lock.mode }
  get token () { return this.#lock.token }
  get ownerDied () { return this.#lock.ownerDied }
  get signal () { return this.#lock.signal }
  get isLost () { return this.#lock.isLost }

  /** Lets the next holder see `ownerDied`. False if it has been unlocked. */
  abandon () { return this.#lock.abandon() }
}

class HeldLock extends Held {
  #release
  #done

  /**
   * @param {object} lock the argument of the request's callback
   * @param {() => void} release ends that callback
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

module.exports = { HeldLock, HeldSyncLock }
