'use strict'

/** Requests that block this thread: of local engines. */

const { isMainThread } = require('../util/worker-threads')
const { TypeError, now } = require('../util/intrinsics')
const { acquire, take } = require('../holding/acquire')
const { runWith } = require('../holding/run-sync')
const { newGrant } = require('../named/names')
const { assertNoPromise } = require('../waiting/wait-options')
const { types: { isPromise } } = require('util')
const { ProcessLock } = require('./batch')
const { LocalEngine } = require('./local-engine')
const { holderOf, watchBlocked } = require('./long-wait')
const { lostError, timeoutError, unavailableError, unsupportedError } = require('./errors')

const CALLER = 'requestSync'

/**
 * @param {import('./engine-claim').Line} line of the name and mode
 * @param {object} options as `readOptions` returns them
 */
function requestSync (engine, line, options, callback) {
  const { name, mode, timeout, ifAvailable } = options
  if (!(engine instanceof LocalEngine)) {
    throw unsupportedError(CALLER + ': ' + engine.id + ' cannot be asked by a thread that blocks: use request()')
  }
  if (isMainThread && !ifAvailable) {
    throw new TypeError(CALLER + ' would block the main thread: use request(), or ifAvailable')
  }
  const since = now()
  const front = newGrant(line.front, mode === 'shared')
  const late = () => timeoutError(name, timeout, holderOf(engine, name))
  if (ifAvailable ? !take(front) : !acquire(front, timeout, CALLER)) {
    if (ifAvailable) return callNull(callback)
    throw late()
  }
  let isGranted = true
  const result = runWith(front, () => {
    const left = ifAvailable ? 0 : Math.max(0, timeout - (now() - since))
    const grant = acquireOuter(engine, line.place || engine.placeOf(name, mode), options, left)
    isGranted = grant !== undefined
    if (isGranted) return runOuter(options, grant, callback)
  }, undefined, CALLER, 'request()')
  if (isGranted) return result
  if (ifAvailable) return callNull(callback)
  throw late()
}

function acquireOuter (engine, place, { name, label }, left) {
  const { look, end } = watchBlocked(engine, name)
  try {
    return engine.block(place, label, left, look)
  } catch (error) {
    throw unavailableError(name, error)
  } finally {
    end()
  }
}

function runOuter ({ name, mode, repair }, grant, callback) {
  const { ownerDied } = grant
  const lock = new ProcessLock({
    line: { name, mode },
    grant,
    ownerDied,
    get signal () { return grant.lost },
    looksLost: (isOver) => !isOver && !grant.heldNow()
  })
  let isSound = false
  let result
  try {
    if (repair !== undefined && lock.ownerDied) {
      assertNoPromise(repair(lock), CALLER + ': repair', 'request()')
      lock.ownerDied = false
    }
    result = callback(lock)
    isSound = !isPromise(result)
  } finally {
    const isAbandoned = lock.end()
    // Without a repair, an error leaves the mark as it was.
    const died = isAbandoned || (!isSound && (repair !== undefined || ownerDied))
    if (!releaseGrant(grant, mode === 'exclusive' && died) && isSound) isSound = undefined
  }
  if (isSound === undefined) throw lostError(name)
  return result
}

function releaseGrant (grant, died) {
  try {
    return grant.releaseNow(died, true)
  } catch (_) {
    return false
  }
}

function callNull (callback) {
  const result = callback(null)
  assertNoPromise(result, CALLER + ': callback', 'request()')
  return result
}

module.exports = { requestSync }
