'use strict'

/** Other forms of a request: holds until `unlock()`, and requests that block this thread, of local engines. */

const { isMainThread } = require('../util/worker-threads')
const { TypeError, now } = require('../util/intrinsics')
const { assertStack } = require('../agent/find-agent')
const { acquire, take } = require('../holding/acquire')
const { runWith } = require('../holding/run')
const { newGrant } = require('../named/names')
const { assertNoPromise } = require('../waiting/wait-options')
const { deadlock } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { ProcessLock } = require('./batch')
const { LocalEngine } = require('./built-in-engine')
const { holderOf, watchBlocked } = require('./long-wait')
const { lostError, timeoutError, unavailableError, unsupportedError } = require('./errors')

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

module.exports = { held, holdSync, requestSync }
