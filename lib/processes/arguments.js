'use strict'

/** The arguments of process locks, which are checked before anything happens; their engines' folders; and errors. */

const { existsSync, readdirSync } = require('fs')
const path = require('path')
const { Error, RangeError, TypeError, define } = require('../util/intrinsics')
const { LONGEST_TIMER } = require('../util/timers')
const { assertOptions, describe, flag, option, quote } = require('../util/values')
const { createException } = require('../named/arguments')
const { createError, withCause } = require('../waiting/errors')
const { assertFunction, waitLimits } = require('../waiting/wait-options')
const { abilitiesOf } = require('./built-in-engine')

const OF_LOCKS = ['batch', 'batchTime', 'label']
const OF_ALL = ['mode', 'signal', 'timeout', 'ifAvailable', 'label']
const OF_ONE = [...OF_ALL, 'maxHold', 'permits']

/** A thread waits for each permit. */
const MOST_PERMITS = 256
const { isInteger } = Number

/** The options of each function. A signal comes last where it is known, but refused. */
const OPTIONS = {
  hold: OF_ONE,
  holdAll: OF_ALL,
  request: [...OF_ONE, 'repair'],
  requestAll: [...OF_ALL, 'repair'],
  holdSync: ['mode', 'timeout', 'ifAvailable', 'label', 'signal'],
  requestSync: ['mode', 'timeout', 'ifAvailable', 'repair', 'label', 'signal']
}

function assertString (value, caller, what) {
  if (typeof value !== 'string') throw new TypeError(caller + ': ' + what + ' must be a string, not ' + describe(value))
}

function assertPath (value, caller, what) {
  if (typeof value === 'string' && value !== '') return
  throw new TypeError(caller + ': ' + what + ' must be a path, not ' + describe(value))
}

function labelOf (options, caller, otherwise) {
  const label = option(options, 'label', otherwise)
  if (label !== undefined) assertString(label, caller, 'label')
  return label
}

function readLocksOptions (options) {
  const caller = 'processLocks'
  assertOptions(options, OF_LOCKS, caller)
  const limit = (name, otherwise, least, kind) => {
    const value = option(options, name, otherwise)
    if (typeof value === 'number' && value >= least) return value
    throw new RangeError(caller + ': ' + name + ' must be ' + kind + ' from ' + least + ' on, not ' + describe(value))
  }
  const batch = limit('batch', 32, 1, 'a number')
  return { batch, batchTime: limit('batchTime', 50, 0, 'a number of milliseconds'), label: labelOf(options, caller) }
}

/** @param {{ modes: string[], id: string }} engine */
function readOptions (options, caller, engine, label) {
  const known = OPTIONS[caller]
  const hearsSignal = known[known.length - 1] !== 'signal'
  assertOptions(options, known, caller, hearsSignal ? known.length : known.length - 1)
  const mode = option(options, 'mode', 'exclusive')
  if (mode !== 'exclusive' && mode !== 'shared') {
    throw new TypeError(caller + ': mode must be \'exclusive\' or \'shared\', not ' + describe(mode))
  }
  const ifAvailable = flag(options, 'ifAvailable', caller)
  const { timeout, signal } = waitLimits(options, caller, hearsSignal)
  const repair = option(options, 'repair')
  if (repair !== undefined) assertFunction(repair, caller, 'repair')
  const maxHold = numberOf(options, 'maxHold', caller, 'a number of milliseconds', LONGEST_TIMER, engine)
  const permits = numberOf(options, 'permits', caller, 'an integer', MOST_PERMITS, engine)
  if (repair !== undefined || maxHold !== undefined || permits !== undefined) {
    assertCompatible({ repair, maxHold, permits }, mode, caller)
  }
  if (!engine.modes.includes(mode)) throw unsupportedError(engine.id + ' has no ' + mode + ' locks')
  const own = labelOf(options, caller, label)
  // For messages: one of several names has only what is left.
  const wholeTimeout = timeout
  return { mode, timeout, wholeTimeout, signal, ifAvailable, maxHold, permits, repair, label: own }
}

/** @throws {TypeError} an option needs an exclusive lock, or cannot be combined with another one */
function assertCompatible (options, mode, caller) {
  const [what, other] = ['repair', 'maxHold', 'permits'].filter((each) => options[each] !== undefined)
  if (mode === 'shared') {
    throw new TypeError(caller + ': ' + what + ' needs an exclusive lock, and mode is \'shared\'')
  }
  if (options.permits !== undefined && other !== undefined) {
    throw new TypeError(caller + ': permits cannot be combined with ' + what)
  }
}

/** Reads a number for which the engine needs an ability. */
function numberOf (options, name, caller, kind, most, engine) {
  const value = option(options, name)
  if (value === undefined) return undefined
  const message = caller + ': ' + name + ' must be ' + kind + ' from 1 to ' + most + ', not ' + describe(value)
  if (typeof value !== 'number') throw new TypeError(message)
  if (!(value >= 1 && value <= most && (name !== 'permits' || isInteger(value)))) throw new RangeError(message)
  if (abilitiesOf(engine)[name]) return value
  throw unsupportedError(caller + ': ' + engine.id + ' has no ' + name)
}

function assertEngine (engine) {
  const isEngine = typeof engine === 'object' && engine !== null && typeof engine.id === 'string' &&
    Array.isArray(engine.modes) && ['acquire', 'attempt', 'close'].every((name) => typeof engine[name] === 'function')
  if (isEngine) return
  throw new TypeError('processLocks: engine must be a folder, or an engine (with id, modes, acquire, attempt, query ' +
    'and close), not ' + describe(engine))
}

// ——— A folder's locks are files, or in a table: a lock of each could be held at the same time ———

/** The table. Its name stays, so that versions with another layout (src/mapped/mod.rs) refuse each other's. */
const TABLE = 'locks-1.mapped'

const tableIn = (folder) => path.join(folder, TABLE)

/** @throws {Error} its locks are in a table */
function assertNoTable (folder) {
  if (existsSync(tableIn(folder))) throw other(folder, 'memory', 'files')
}

/** @throws {Error} its locks are files */
function assertNoFiles (folder) {
  const isLock = (name) => /^[0-9a-f]{64}\.(lock|gate)$/.test(name)
  const hasNoTable = existsSync(folder) && !existsSync(tableIn(folder))
  if (hasNoTable && readdirSync(folder).some(isLock)) throw other(folder, 'files', 'memory')
}

const other = (folder, used, asked) => new Error(`the folder ${folder} has locks of ${used}(), which those of ` +
  `${asked}() would not exclude: take another folder, or one engine in all processes`)

// ——— Errors ———

/** Quotes a name for messages; of a long one, its beginning. */
const show = (name) => quote(name, 64)

/** Characters that a terminal obeys, or shows nowhere. Others choose their labels, and the names of their hosts. */
// eslint-disable-next-line no-control-regex -- it finds them
const HIDDEN = /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** Describes a holder, as far as it is known: `process 12 on host, thread 3, "label"`. */
function describeHolder ({ pid, host, threadId, label, isOurs }) {
  const parts = []
  if (isOurs) parts.push('this process')
  else if (pid !== undefined) parts.push('process ' + pid + (host === undefined ? '' : ' on ' + host))
  else if (host !== undefined) parts.push('a process on ' + host)
  if (threadId) parts.push('thread ' + threadId)
  if (label !== undefined) parts.push(show(label))
  return parts.join(', ').replace(HIDDEN, '')
}

/**
 * Returns who keeps others from a lock. By the answer to a query: the first holder. If there is none, the first in line
 * does so, which may stand still; but not one of this process, which is as far as the asker.
 */
function obstacleIn ({ held, pending = [] }) {
  if (held.length > 0) return held[0]
  const [first] = pending
  return first === undefined || first.isOurs ? undefined : { ...first, isWaiting: true }
}

/** Says who keeps others from a lock. */
const relationOf = (holder, who) => (holder !== undefined && holder.isWaiting ? 'behind ' : 'held by ') + who

/** @param {object} [holder] as `obstacleIn` returns it */
function timeoutError (name, timeout, holder) {
  const who = holder === undefined ? '' : describeHolder(holder)
  const why = who && ', ' + relationOf(holder, who)
  const message = 'Timed out after ' + timeout + ' ms waiting for ' + show(name) + why
  const { pid = null, threadId = null, isWaiting } = holder || { isWaiting: true }
  const owner = isWaiting ? null : { pid, threadId }
  return createError(message, 'ERR_TIMEOUT', { name: 'TimeoutError', holder: holder || null, owner })
}

function lostError (name, cause) {
  const message = 'The lock of ' + show(name) + ' was lost before the end of its callback'
  return withCause(createError(message, 'ERR_LOCK_LOST', { name: 'LockLostError' }), cause)
}

/** Returns why an engine failed. What it throws may be anything. */
function reasonOf (cause) {
  try {
    const why = (cause && (cause.message || cause.code)) || cause
    return typeof why === 'string' ? why : describe(why)
  } catch (_) {
    return 'its engine failed'
  }
}

/** Marks errors of a request, not of its engine: also for other copies of the package. */
const REFUSAL = Symbol.for('atomics-waitasync.refusal')

/** Makes the error of a name with another number of permits. Undefined, or 0: without. */
function permitsError (name, permits, others) {
  const [wanted, used] = [permits, others].map((each) => each ? 'with permits: ' + each : 'without permits')
  const error = new RangeError('The name ' + show(name) + ' is held or awaited ' + used + ', and not ' + wanted)
  define(error, REFUSAL, true)
  return error
}

function unavailableError (name, cause) {
  if (cause instanceof Error && (cause[REFUSAL] || cause.code === 'ERR_SHARED_MEMORY_UNAVAILABLE')) return cause
  const message = 'No lock for ' + show(name) + ': ' + reasonOf(cause)
  return withCause(createError(message, 'ERR_LOCK_UNAVAILABLE', { name: 'LockUnavailableError' }), cause)
}

const closedError = () => createException('AbortError', 'The locks have been closed')

const unsupportedError = (message) => createException('NotSupportedError', message)

module.exports = {
  assertEngine, assertNoFiles, assertNoTable, assertPath, assertString, closedError, describeHolder, lostError,
  obstacleIn, permitsError, readLocksOptions, readOptions, relationOf, show, tableIn, timeoutError, unavailableError,
  unsupportedError
}
