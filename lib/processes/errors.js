'use strict'

/** The errors of process locks. */

const { Error, RangeError, define } = require('../util/intrinsics')
const { describe, quote } = require('../util/values')
const { createException } = require('../named/arguments')
const { createError, withCause } = require('../waiting/errors')

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
  closedError, describeHolder, lostError, obstacleIn, permitsError, relationOf, show, timeoutError, unavailableError,
  unsupportedError
}
