'use strict'

/**
 * The locks of several names at once: all or none.
 *
 * They are held one after the other, in the order of their UTF-16 code units: so requests for several names do not wait
 * for each other in a circle. What is held for a request that fails is given back before its promise rejects, with the
 * marks of deaths that nobody has repaired.
 */

const { RangeError, define, freeze, now } = require('../util/intrinsics')
const { namesOf } = require('../named/arguments')
const { assertString } = require('./arguments')
const { lostError, show } = require('./errors')
const { showLock } = require('./held-lock')

/** Reads an iterable of names: sorted, without doubles. */
function readNames (names, caller) {
  const all = namesOf(names, caller, (name) => {
    assertString(name, caller, 'a name')
    return name
  })
  if (all.length === 0) throw new RangeError(caller + ': names must have at least one name')
  return all
}

/**
 * Calls `callback(lock)` with the locks of all names; with null if one is not available.
 * @param {object} options as `readOptions` returns them
 * @param {(name: string, options: object) => Promise<object | null>} hold holds the lock of one name
 */
async function requestAll (names, options, hold, callback) {
  const all = new AllNames(names, options)
  if (!await all.take(hold)) return callback(null)
  const { repair } = options
  const lock = new AllLock(all)
  let result
  try {
    if (repair !== undefined && all.ownerDied) {
      await all.unlessLost(repair(lock))
      if (all.isAbandoned) throw new Error('The repair of ' + names.map(show).join(', ') + ' has abandoned the locks')
      all.ownerDied = false
    }
    result = await all.unlessLost(callback(lock))
  } catch (error) {
    await all.giveBack(repair !== undefined || all.error !== undefined)
    throw error
  }
  await all.unlock()
  return result
}

/** The locks of some of the names, and then of all. */
class AllNames {
  constructor (names, options) {
    this.names = names
    this.options = options
    this.held = []
    this.tokens = []
    this.ownerDied = false
    this.isAbandoned = false
    this.loser = new AbortController()
    /** The error of a lock that was lost. */
    this.error = undefined
    this.lost = new Promise((resolve, reject) => { this.rejectLost = reject })
    this.lost.catch(() => {})
  }

  /** Holds one after the other. False if one is not available, and nothing is held. */
  async take (hold) {
    const { names, options } = this
    const until = now() + options.timeout
    // The repair comes once all are held.
    const each = { ...options, repair: undefined, signal: either(this.loser.signal, options.signal) }
    let isTaken = true
    try {
      for (let n = 0; n < names.length && isTaken; n++) {
        // An attempt would fail where a request waits, as for a descriptor: only the program asks for one.
        const timeout = options.timeout && Math.max(1, until - now())
        const lock = await hold(names[n], { ...each, timeout })
        isTaken = lock !== null
        if (isTaken) this.add(lock)
      }
      // No timer may have run since: they look at the clock.
      if (isTaken) for (const each of this.held) if (each.isLost) this.lose(each.signal.reason || lostError(each.name))
      if (this.error !== undefined) throw this.error
    } catch (error) {
      await this.giveBack(false)
      throw this.error || error
    }
    if (!isTaken) await this.giveBack(false)
    return isTaken
  }

  add (lock) {
    this.held.push(lock)
    this.tokens.push(lock.token)
    if (lock.ownerDied) this.ownerDied = true
    const { signal } = lock
    const lose = () => this.lose(signal.reason || lostError(lock.name))
    signal.addEventListener('abort', lose)
    if (signal.aborted) lose()
  }

  lose (error) {
    if (this.error !== undefined) return
    this.error = error
    this.rejectLost(error)
    this.loser.abort(error)
  }

  /** Settles as the promise does, or rejects once a lock is lost. */
  unlessLost (promise) { return Promise.race([this.lost, promise]) }

  abandon () {
    // Each of them, also if the first says no.
    const isAbandoned = this.held.filter((each) => each.abandon()).length > 0
    if (isAbandoned) this.isAbandoned = true
    return isAbandoned
  }

  /** Gives all back after a failure. The next holders see a death if they saw one, or if the state is unsound. */
  async giveBack (isUnsound) {
    for (const each of this.held) if (isUnsound || each.ownerDied) each.abandon()
    await this.unlock().catch(() => {})
  }

  /** Gives all back. Rejects if one was lost. */
  async unlock () {
    const ends = await Promise.allSettled(this.held.map((each) => each.unlock()))
    const failed = ends.find(({ status }) => status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}

/** The argument of a callback. */
class AllLock {
  #all

  constructor (all) {
    this.#all = all
    define(this, 'names', all.names, true)
    define(this, 'tokens', freeze(all.tokens), true)
  }

  get mode () { return this.#all.options.mode }
  get ownerDied () { return this.#all.ownerDied }
  get signal () { return this.#all.loser.signal }
  get isLost () { return this.#all.error !== undefined || this.#all.held.some((each) => each.isLost) }

  /** Lets the next holders see `ownerDied`, once the callback ends. False if it has ended. */
  abandon () { return this.#all.abandon() }
}
showLock(AllLock)

/** A signal that aborts when one of two does. */
const either = (one, other) => other === undefined ? one : {
  get aborted () { return one.aborted || other.aborted },
  get reason () { return (one.aborted ? one : other).reason },
  addEventListener (type, listener) {
    for (const each of [one, other]) each.addEventListener(type, listener)
  },
  removeEventListener (type, listener) {
    one.removeEventListener(type, listener)
    if (typeof other.removeEventListener === 'function') other.removeEventListener(type, listener)
  }
}

module.exports = { readNames, requestAll }
