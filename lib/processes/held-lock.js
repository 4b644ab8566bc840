'use strict'

/** A lock that is held until `unlock()`. */

const { define } = require('../util/intrinsics')

class HeldLock {
  #lock
  #release
  #done

  /**
   * @param {object} lock the argument of the request's callback
   * @param {() => void} release ends that callback
   * @param {Promise<void>} done the request's
   */
  constructor (lock, release, done) {
    this.#lock = lock
    this.#release = release
    this.#done = done
  }

  get name () { return this.#lock.name }
  get mode () { return this.#lock.mode }
  get token () { return this.#lock.token }
  get ownerDied () { return this.#lock.ownerDied }
  get signal () { return this.#lock.signal }
  get isLost () { return this.#lock.isLost }

  /** Lets the next holder see `ownerDied`. False if it has been unlocked. */
  abandon () { return this.#lock.abandon() }

  /** Gives the lock back. Rejects with ERR_LOCK_LOST if it was not held until then. */
  async unlock () {
    this.#release()
    await this.#done
  }
}

// Not on every Node.
const { asyncDispose } = Symbol
if (asyncDispose !== undefined) define(HeldLock.prototype, asyncDispose, HeldLock.prototype.unlock, false, true)

module.exports = { HeldLock }
