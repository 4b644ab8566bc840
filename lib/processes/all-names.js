'use strict'

/**
 * The locks of several names at once: all or none.
 *
 * They are requested one within the other, in the order of their UTF-16 code units: so requests for several names do
 * not wait for each other in a circle. What fails within gives back all, with the marks of deaths that nobody repaired.
 */

const { RangeError, define, freeze, now } = require('../util/intrinsics')
const { namesOf } = require('../named/arguments')
const { assertString } = require('./arguments')
const { showLock } = require('./batch')
const { lostError, show } = require('./errors')

/** What the innermost request fails with if its lock is not available. */
const MISSED = new Error('A lock is not available')

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
 * @param {(name: string, options: object, callback: Function) => Promise<unknown>} request requests one name
 */
async function requestAll (names, options, request, callback) {
  const { mode, repair, timeout } = options
  const until = now() + timeout
  const loser = new AbortController()
  const signal = either(loser.signal, options.signal)
  const locks = []
  const requests = []
  function next () {
    if (locks.length === names.length) return run(new AllLock(names, mode, locks, loser.signal), repair, callback)
    // An attempt would fail where a request waits, as for a descriptor: only the program asks for one.
    const left = timeout && Math.max(1, until - now())
    const promise = request(names[locks.length], { ...options, repair: undefined, signal, timeout: left }, (lock) => {
      if (lock === null) throw MISSED
      locks.push(lock)
      const { signal: lost } = lock
      lost.addEventListener('abort', () => loser.abort(lost.reason))
      return next()
    })
    requests.push(promise)
    return promise
  }
  try {
    return await next()
  } catch (error) {
    // That of a lock that is lost rejects at once: those within are still to give back theirs.
    await Promise.allSettled(requests)
    if (error !== MISSED) throw error
  }
  return callback(null)
}

/** Calls back once all are held. The next holders see a death if the state is unsound. */
async function run (lock, repair, callback) {
  const { names, signal } = lock
  let endEarly
  const lost = new Promise((resolve) => { endEarly = resolve })
  signal.addEventListener('abort', () => {
    // Before the request of the lost one fails.
    lock.abandon()
    endEarly()
  })
  /** Settles as the promise does, or rejects once one is lost: which one, says the error of that one's request. */
  const settled = async (promise) => {
    const result = await Promise.race([lost, promise])
    if (signal.aborted) throw lostError(names[0])
    return result
  }
  try {
    // No timer may have run since the first: they look at the clock.
    if (lock.isLost) throw lostError(names[0])
    if (repair !== undefined && lock.ownerDied) {
      await settled(repair(lock))
      if (lock.isAbandoned) throw new Error('The repair of ' + names.map(show).join(', ') + ' has abandoned the locks')
      lock.ownerDied = false
    }
    return await settled(callback(lock))
  } catch (error) {
    if (repair !== undefined) lock.abandon()
    throw error
  }
}

/** The argument of a callback. */
class AllLock {
  #locks

  constructor (names, mode, locks, signal) {
    this.#locks = locks
    define(this, 'names', names, true)
    define(this, 'tokens', freeze(locks.map(({ token }) => token)), true)
    define(this, 'mode', mode)
    define(this, 'signal', signal)
    this.ownerDied = locks.some(({ ownerDied }) => ownerDied)
    this.isAbandoned = false
  }

  get isLost () { return this.signal.aborted || this.#locks.some(({ isLost }) => isLost) }

  /** Lets the next holders see `ownerDied`, once the callback ends. False if it has ended. */
  abandon () {
    // Each of them, also if the first says no.
    const isAbandoned = this.#locks.filter((each) => each.abandon()).length > 0
    if (isAbandoned) this.isAbandoned = true
    return isAbandoned
  }
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
