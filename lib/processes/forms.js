'use strict'

/** Other forms of a request: for several names, until `unlock()`, and blocking this thread, of local engines. */

const { isMainThread } = require('../util/worker-threads')
const { RangeError, TypeError, define, freeze, now } = require('../util/intrinsics')
const { assertStack } = require('../agent/find-agent')
const { acquire, take } = require('../holding/acquire')
const { runWith } = require('../holding/run')
const { namesOf } = require('../named/arguments')
const { newGrant } = require('../named/names')
const { assertNoPromise } = require('../waiting/wait-options')
const { deadlock } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { assertString, lostError, show, timeoutError, unavailableError, unsupportedError } = require('./arguments')
const { ProcessLock, showLock } = require('./batch')
const { LocalEngine } = require('./built-in-engine')
const { holderOf, watchBlocked } = require('./long-wait')

// Not on every Node.
const { asyncDispose, dispose } = Symbol

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
      return new Promise((resolve) => {
        const unlock = async () => {
          resolve()
          await done
        }
        settle.resolve(withUnlock(lock, unlock, asyncDispose))
      })
    })
    done.catch(settle.reject)
  } catch (error) {
    settle.reject(error)
  }
  return promise
}

/**
 * Gives `unlock` to the argument of a callback.
 * @param {() => unknown} unlock gives the lock back at the first call; each fails if it was not held until then
 */
function withUnlock (lock, unlock, using) {
  lock.unlock = unlock
  if (using !== undefined) lock[using] = unlock
  return lock
}

/** The lock of an engine, and the named lock in front. It is run with as a Hold is, and is what a ProcessLock is of. */
class SyncHold {
  constructor (line, front, grant, repair) {
    this.line = line
    this.front = front
    this.grant = grant
    this.repair = repair
    this.ownerDied = grant.ownerDied
    this.given = new ProcessLock(this)
  }

  get token () { return this.front.token }
  get signal () { return this.grant.lost }
  looksLost (isOver) { return !isOver && !this.grant.heldNow() }

  /**
   * Gives both back. Without a repair, an error leaves the mark as it was.
   * @throws {Error} with code ERR_LOCK_LOST if it was lost, and the callback has not failed
   */
  end (failed) {
    const { front, given, grant, repair } = this
    const died = given.end() || (failed && (repair !== undefined || grant.ownerDied))
    let wasHeld = false
    try {
      wasHeld = grant.releaseNow(died && given.mode === 'exclusive', true)
    } catch (_) {}
    front.end(false)
    if (!wasHeld && !failed) throw lostError(given.name)
  }
}

/**
 * Runs a callback with a lock for which this thread blocks.
 * @param {import('./engine-claim').Line} line of the name and mode
 * @param {object} options as `readOptions` returns them
 */
function requestSync (engine, line, options, callback) {
  const { repair } = options
  const run = (lock) => {
    if (repair !== undefined && lock !== null && lock.ownerDied) {
      assertNoPromise(repair(lock), 'requestSync: repair', 'request()')
      lock.ownerDied = false
    }
    return callback(lock)
  }
  const hold = acquireHold(engine, line, options, 'requestSync', 'request()')
  return runWith(hold, run, undefined, 'requestSync', 'request()')
}

/**
 * Blocks for a lock, and leaves it to the caller. Null if it is not available.
 * @param {() => void} onEnd called once it is given back
 */
function holdSync (engine, line, options, onEnd) {
  const hold = acquireHold(engine, line, options, 'holdSync', 'hold()')
  if (hold === null) return null
  let isOver = false
  let failure
  const unlock = () => {
    if (!isOver) {
      assertStack()
      isOver = true
      try {
        hold.end(false)
      } catch (error) {
        failure = error
      }
      onEnd()
    }
    if (failure !== undefined) throw failure
  }
  return withUnlock(hold.given, unlock, dispose)
}

/** Blocks for the named lock in front, and then for the engine's. Null if one is not available. */
function acquireHold (engine, line, { label, timeout, ifAvailable, repair }, caller, twin) {
  const { name, mode } = line
  if (!(engine instanceof LocalEngine)) {
    throw unsupportedError(caller + ': ' + engine.id + ' cannot be asked by a thread that blocks: use ' + twin)
  }
  if (isMainThread && !ifAvailable && timeout > 0) {
    throw new TypeError(caller + ' would block the main thread: use ' + twin + ', or ifAvailable, or timeout: 0')
  }
  const since = now()
  const front = newGrant(line.front, mode === 'shared')
  let grant
  if (ifAvailable ? take(front) : acquireFront(front, timeout, caller, name)) {
    const { look, end } = watchBlocked(engine, name)
    try {
      const left = ifAvailable ? 0 : Math.max(0, timeout - (now() - since))
      grant = engine.block(line.place || engine.placeOf(name, mode), label, left, look)
    } catch (error) {
      throw unavailableError(name, error)
    } finally {
      end()
      if (grant === undefined) front.end(false)
    }
  }
  if (grant !== undefined) return new SyncHold(line, front, grant, repair)
  if (ifAvailable) return null
  throw timeoutError(name, timeout, holderOf(engine, name))
}

/** Blocks for the named lock in front. A thread that waits for itself learns of the lock's own name. */
function acquireFront (front, timeout, caller, name) {
  try {
    return acquire(front, timeout, caller)
  } catch (error) {
    // A cycle has the names of several locks, and so those of their engines.
    if (error.code !== 'ERR_DEADLOCK' || error.cycle !== undefined) throw error
    throw deadlock(caller, { id: error.id, name }, error, error.message.endsWith('holds') ? 'holds' : 'awaits')
  }
}

// ——— Several names at once: all or none. They are requested one within the other, in the order of their UTF-16 code
// units: so requests for several names do not wait for each other in a circle. What fails within gives back all, with
// the marks of deaths that nobody repaired ———

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
    if (locks.length === names.length) return runAll(new AllLock(names, mode, locks, loser.signal), repair, callback)
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
async function runAll (lock, repair, callback) {
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

module.exports = { held, holdSync, readNames, requestAll, requestSync }
