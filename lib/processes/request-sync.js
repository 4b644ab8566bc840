'use strict'

/** Requests that block this thread: of local engines. */

const { isMainThread } = require('../util/worker-threads')
const { TypeError, now } = require('../util/intrinsics')
const { assertStack } = require('../agent/find-agent')
const { acquire, take } = require('../holding/acquire')
const { runWith } = require('../holding/run')
const { newGrant } = require('../named/names')
const { assertNoPromise } = require('../waiting/wait-options')
const { types: { isPromise } } = require('util')
const { ProcessLock } = require('./batch')
const { heldSync } = require('./held-lock')
const { LocalEngine } = require('./local-engine')
const { holderOf, watchBlocked } = require('./long-wait')
const { lostError, timeoutError, unavailableError, unsupportedError } = require('./errors')

/**
 * Runs a callback with a lock for which this thread blocks.
 * @param {import('./engine-claim').Line} line of the name and mode
 * @param {object} options as `readOptions` returns them
 */
function requestSync (engine, line, options, callback) {
  const held = acquireLock(engine, line, options, 'requestSync', 'request()')
  if (held !== null) {
    const run = () => runOuter(line, options.repair, held.grant, callback)
    return runWith(held.front, run, undefined, 'requestSync', 'request()')
  }
  const result = callback(null)
  assertNoPromise(result, 'requestSync: callback', 'request()')
  return result
}

/**
 * Blocks for a lock, and leaves it to the caller. Null if it is not available.
 * @param {() => void} onEnd called once it is given back
 */
function holdSync (engine, line, options, onEnd) {
  const held = acquireLock(engine, line, options, 'holdSync', 'hold()')
  if (held === null) return null
  const lock = lockOf(line, held.grant)
  let isOver = false
  let failure
  return heldSync(lock, () => {
    if (!isOver) {
      assertStack()
      isOver = true
      if (!releaseGrant(held.grant, lock.end())) failure = lostError(line.name)
      held.front.end(false)
      onEnd()
    }
    if (failure !== undefined) throw failure
  })
}

/** Blocks for the named lock in front, and then for the engine's. Null if one is not available. */
function acquireLock (engine, line, { label, timeout, ifAvailable }, caller, twin) {
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
  if (ifAvailable ? take(front) : acquire(front, timeout, caller)) {
    try {
      const left = ifAvailable ? 0 : Math.max(0, timeout - (now() - since))
      grant = acquireOuter(engine, line.place || engine.placeOf(name, mode), name, label, left)
    } finally {
      if (grant === undefined) front.end(false)
    }
  }
  if (grant !== undefined) return { front, grant }
  if (ifAvailable) return null
  throw timeoutError(name, timeout, holderOf(engine, name))
}

function acquireOuter (engine, place, name, label, left) {
  const { look, end } = watchBlocked(engine, name)
  try {
    return engine.block(place, label, left, look)
  } catch (error) {
    throw unavailableError(name, error)
  } finally {
    end()
  }
}

/** Makes the argument of a callback. */
function lockOf (line, grant) {
  return new ProcessLock({
    line,
    grant,
    ownerDied: grant.ownerDied,
    get signal () { return grant.lost },
    looksLost: (isOver) => !isOver && !grant.heldNow()
  })
}

function runOuter (line, repair, grant, callback) {
  const { ownerDied } = grant
  const lock = lockOf(line, grant)
  let isSound = false
  let result
  try {
    if (repair !== undefined && lock.ownerDied) {
      assertNoPromise(repair(lock), 'requestSync: repair', 'request()')
      lock.ownerDied = false
    }
    result = callback(lock)
    isSound = !isPromise(result)
  } finally {
    const isAbandoned = lock.end()
    // Without a repair, an error leaves the mark as it was.
    const died = isAbandoned || (!isSound && (repair !== undefined || ownerDied))
    if (!releaseGrant(grant, line.mode === 'exclusive' && died) && isSound) isSound = undefined
  }
  if (isSound === undefined) throw lostError(line.name)
  return result
}

function releaseGrant (grant, died) {
  try {
    return grant.releaseNow(died, true)
  } catch (_) {
    return false
  }
}

module.exports = { holdSync, requestSync }
