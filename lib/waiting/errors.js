'use strict'

/**
 * What users read of locks and waits: nouns, cycles, errors.
 *
 * The errors can be made even where `Error.prototype` is frozen, so that assigning a name would throw.
 *
 * V8 adds the functions that await a promise to the stack of an error only if the error is made in an async function
 * whose promise that is. So a wait that has timed out resolves with LATE, and an async function then makes the error.
 */

const {
  Error, RangeError, String, TypedArrayLength, captureStackTrace, define, keys, parse
} = require('../util/intrinsics')
const { describe, isObject, quote } = require('../util/values')

/**
 * What users read of each wait kind: the kind, the mode, and what of the object is awaited. `npm run lint -- --fix`
 * writes the table into native code.
 */
const NOTIFIED = [
  { kind: 'wait', part: '' },
  { kind: 'Condition', part: '' },
  { kind: 'Barrier', part: 'the other parties of ' },
  { kind: 'Latch', part: '' },
  { kind: 'Queue', mode: 'put', part: 'room in ' },
  { kind: 'Queue', mode: 'take', part: 'a message of ' },
  { kind: 'Queue', mode: 'use', part: 'a message of ' },
  { kind: 'Queue', mode: 'idle', part: 'the end of all work of ' }
]
/** The wait kinds: the indexes of `NOTIFIED`. */
const waitKinds = { WAIT: 0, CONDITION: 1, BARRIER: 2, LATCH: 3, PUT: 4, TAKE: 5, USE: 6, IDLE: 7 }
/**
 * How many wait kinds there is room for. `waitKind + WAIT_KINDS * n` is a wait at the nth word behind the
 * first word of its object.
 */
const WAIT_KINDS = 16

/** Names an awaited or held lock by a noun phrase. Takes an entry of a snapshot, or the kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  switch (kind) {
    case 'named': return 'the lock named ' + quote(name)
    case 'AsyncLock': return one('an AsyncLock', kind, name)
    case 'RwLock': return one('an RwLock', kind, name) + ' (' + mode + ')'
    case 'Semaphore': return 'permits of ' + one('a Semaphore', kind, name)
    default: return partOf(kind, mode) + one('a ' + kind, kind, name)
  }
}

function partOf (kind, mode) {
  for (let n = 0; n < NOTIFIED.length; n++) {
    if (NOTIFIED[n].kind === kind && NOTIFIED[n].mode === mode) return NOTIFIED[n].part
  }
  return ''
}

const one = (anyOne, kind, name) => name === undefined ? anyOne : kind + ' ' + quote(name)

/**
 * Parses the JSON that a function of native code returns.
 * @throws {RangeError} no string can hold it
 */
function parseList (list, caller) {
  let json
  try {
    json = list()
  } catch (error) {
    if (error.code !== 'GenericFailure') throw error
    throw new RangeError(caller + ': what is held and awaited has too many entries, or names that are too long, for ' +
      'one string')
  }
  return parse(json)
}

/** Reads the cycle that refused this thread's last claim, and its text. */
function cycleOf (binding) {
  const { text, links: cycle } = parse(binding.cycle())
  return { text, cycle }
}

/** The value of a wait's promise when its time is over. */
const LATE = Symbol('atomics-waitasync.late')

/** Awaits a promise; for LATE, throws the error that `createError` makes. */
async function unlessLate (promise, createError) {
  const outcome = await promise
  if (outcome === LATE) throw hideFrames(createError(), unlessLate)
  return outcome
}

/** Removes the frames down to `fn` from an error, and returns it. The package's own frames say nothing to its users. */
function hideFrames (error, fn) {
  if (captureStackTrace !== undefined) captureStackTrace(error, fn)
  return error
}

function createError (message, code, more = {}, Class = Error) {
  const error = new Class(message)
  const fields = { __proto__: null, code, ...more }
  const names = keys(fields)
  for (let n = 0; n < names.length; n++) define(error, names[n], fields[names[n]], true, true)
  return error
}

function withCause (error, cause) {
  if (cause !== undefined) define(error, 'cause', cause, false, true)
  return error
}

/**
 * @param {{ id: number, name: string | undefined, owner?: () => object | null }} word the awaited word
 * @param {{ kind: string, mode?: string }} what as in a snapshot
 */
function timeoutError (word, { kind, mode }, timeout) {
  // Permits may be those of any number of threads.
  const owner = mode === 'exclusive' || mode === 'shared' ? word.owner() : null
  const noun = nounOf({ kind, mode, name: word.name })
  return createError('Timed out after ' + timeout + ' ms waiting for ' + noun +
    (owner === null ? '' : ', held by ' + nameOfOwner(owner)), 'ERR_TIMEOUT',
  { name: 'TimeoutError', kind, id: word.id, holder: owner === null ? null : owner.threadId, owner })
}

/** Names who has a word: a thread of this process, or another process, whose number may be unknown. */
function nameOfOwner ({ pid, threadId }) {
  if (threadId !== null) return 'thread ' + threadId
  return pid === null ? 'another process' : 'process ' + pid
}

const queueClosed = (caller) => createError(caller + ': the queue is closed', 'ERR_QUEUE_CLOSED')

/**
 * Makes the error for a message that cannot be read.
 * @param {unknown} cause why
 * @param {{ attempt: number, unread: { bytes: Uint8Array, format: string } }} lease
 */
function queueUnreadable (caller, cause, { attempt, unread: { bytes, format } }) {
  return withCause(createError(caller + ': a message of ' + TypedArrayLength(bytes) + ' bytes, format "' + format +
    '", cannot be read, and has been removed: ' + messageOf(cause), 'ERR_QUEUE_UNREADABLE',
  { attempt, format, bytes }), cause)
}

const messageOf = (error) => isObject(error) ? String(error.message) : describe(error)

const notLocked = (message) => createError(message, 'ERR_NOT_LOCKED')

/** Makes the error of a wait that would never end: `why` follows the noun. */
function endless (caller, word, { kind, mode }, why) {
  const noun = nounOf({ kind, mode, name: word.name })
  return createError(caller + ': would wait for ' + noun + ', ' + why, 'ERR_DEADLOCK', { kind, id: word.id })
}

/** A thread would wait for itself. `does` is 'holds' or 'awaits'; the other arguments are as for `timeoutError`. */
const deadlock = (caller, word, what, does) => (
  endless(caller, word, what, 'which this thread itself already ' + does))

/** A task would wait for itself: a callback around the call holds what it requests. */
const reentry = (caller, word, what) => (
  endless(caller, word, what, 'which the callback around this call already holds'))

/** A thread would put for ever. `threads`: those that have all messages in use and block so, this one first. */
function deadlockOfPutters (caller, word, threads) {
  let others = ''
  for (let n = 1; n < threads.length; n++) others += (n === 1 ? '' : ', ') + threads[n]
  return endless(caller, word, { kind: 'Queue', mode: 'put' }, 'of which this thread and ' +
    (threads.length === 2 ? 'thread ' : 'threads ') + others + ', blocked in put, have all messages in use')
}

/**
 * Makes the error of a thread that would close a cycle.
 * @param {{ text: string, cycle: object[] }} found the cycle, and its text: each thread and the lock that it awaits
 */
function deadlockCycle (caller, word, { kind }, found) {
  const message = caller + ': none of these threads could go on:\n' + found.text
  return createError(message, 'ERR_DEADLOCK', { kind, id: word.id, cycle: found.cycle })
}

/** Reads a signal's reason: an AbortError where it has none. Its getter may throw. */
const readReason = (signal) => orAbortError(signal.reason)

/** Reads a signal's reason, or a getter's error. Never undefined: that would say that nothing was aborted. */
function abortReason (signal) {
  try {
    return readReason(signal)
  } catch (error) {
    return orAbortError(error)
  }
}

function orAbortError (reason) {
  return reason === undefined ? createError('The operation was aborted', 'ABORT_ERR', { name: 'AbortError' }) : reason
}

function throwIfAborted (signal, reasonOf = readReason) {
  if (signal !== undefined && signal.aborted) throw reasonOf(signal)
}

module.exports = {
  LATE, NOTIFIED, WAIT_KINDS, abortReason, createError, cycleOf, deadlock, deadlockCycle, deadlockOfPutters, hideFrames,
  nameOfOwner, notLocked, nounOf, parseList, queueClosed, queueUnreadable, readReason,
  reentry, throwIfAborted, timeoutError, unlessLate, waitKinds, withCause
}
