'use strict'

/**
 * Requests to words, the values of words, and the numbers in entries.
 *
 * A request is a number, `kind + KINDS * amount`. The amount is 0 where there is nothing to count. core/src/lock/ has
 * the same numbers, and the rules.
 *
 * locks/condition.js has the rules of owed notifications. One is in the hold's own entry: the request is negative
 * there, with the address of the notification's word, in units of four bytes, in the place of the amount. So whatever
 * moves, releases or passes on the entry does so with that; a hold owes one notification at most, and nothing owes it
 * any more once the entry has gone.
 */

const { RELAY } = require('../agent/registers')
const { RangeError } = require('../util/intrinsics')
const { NOTIFIED, WAIT_KINDS, nounOf } = require('../waiting/errors')

const LOCK = exports.LOCK = 0
const SHARED = exports.SHARED = 1
const EXCLUSIVE = exports.EXCLUSIVE = 2
/** Permits that return when their holder dies. */
const PERMITS = exports.PERMITS = 3
/** Permits that nobody holds. */
const SIGNALS = exports.SIGNALS = 4
/** A lock by its name; native code puts the number of the request in the place of the amount. */
const NAMED_SHARED = exports.NAMED_SHARED = 5
const NAMED_EXCLUSIVE = exports.NAMED_EXCLUSIVE = 6
/** For observers, not for native code: a notification, with its wait kind in the place of the amount. */
const NOTIFICATION = exports.NOTIFICATION = 7
/** The lock of a step of a queue, held for a moment. No snapshot shows it. */
const INNER = exports.INNER = 8
/** A message in use; the amount is its word's offset. It counts words, from the queue's first word. */
const LEASE = exports.LEASE = 9
/**
 * An owed notification: the pair of events at a word is raised if this thread dies. If there is an amount, all events
 * of the queue are that has its first ones there, those of putters so many words behind. It holds nothing.
 */
const OWED = exports.OWED = 10
/**
 * Permits as PERMITS, of a semaphore that has a limit. Its word counts the permits that are taken, and the limit
 * is the view's (word.js).
 */
const LIMITED = exports.LIMITED = 11
/**
 * A thread that waits to put into a queue: the word counts them, and the amount is its offset. It counts words, from
 * the queue's first word.
 */
const PUTTER = exports.PUTTER = 12
/** The same, while the thread blocks without a timeout. Native code writes it. */
exports.BLOCKED_PUTTER = 13

/** How many kinds there is room for. */
const KINDS = 16

const UNLOCKED = exports.UNLOCKED = 0
const LOCKED = exports.LOCKED = 1
const WRITING = exports.WRITING = -1
/** The largest number of readers or permits. */
const MOST = exports.MOST = 0x7fffffff
/** In the place of a limit where there is none. */
exports.NO_LIMIT = 0

/** A value that no word holds. */
const UNAVAILABLE = exports.UNAVAILABLE = -0x80000000

const requestOf = exports.requestOf = (kind, amount) => kind + KINDS * amount
const kindOf = exports.kindOf = (request) => request % KINDS
const amountOf = exports.amountOf = (request) => (request - kindOf(request)) / KINDS
/** Whether users see a hold: in snapshots, and on channels. */
exports.isVisible = (request) => {
  const kind = kindOf(request)
  return kind !== INNER && kind !== OWED && kind !== PUTTER
}
/** Whether code may share the bare word: its waiters may be in the host's queue. */
exports.isBare = (request) => request === LOCK
/** Whether newcomers overtake nobody. Of native code, `is_strict` in core/src/lock/word.rs says it. */
exports.isStrict = (request) => request !== LOCK && request !== INNER
/** Whether it is for a lock as users know it. */
exports.isExclusive = (request) => request === LOCK || request === EXCLUSIVE
exports.isOwned = (request) => kindOf(request) !== SIGNALS
exports.isNamed = (request) => kindOf(request) === NAMED_SHARED || kindOf(request) === NAMED_EXCLUSIVE

/** Describes a request that users see: its kind, and its mode if it has one. */
function described (request) {
  switch (kindOf(request)) {
    case LOCK: return { kind: 'AsyncLock', mode: 'exclusive' }
    case SHARED: return { kind: 'RwLock', mode: 'shared' }
    case EXCLUSIVE: return { kind: 'RwLock', mode: 'exclusive' }
    case NAMED_SHARED: return { kind: 'named', mode: 'shared' }
    case NAMED_EXCLUSIVE: return { kind: 'named', mode: 'exclusive' }
    case NOTIFICATION: return NOTIFIED[amountOf(request) % WAIT_KINDS]
    case LEASE: return { kind: 'Queue', mode: 'use' }
    case PERMITS: case SIGNALS: case LIMITED: return { kind: 'Semaphore', mode: 'permits' }
    default: throw new RangeError('a request of an unknown kind: ' + request)
  }
}
exports.described = described

/** Names a requested lock by a noun phrase. */
exports.nounOfHold = function nounOfHold ({ word, request }) {
  const { kind, mode } = described(request)
  return nounOf({ kind, mode, name: word.name })
}

/**
 * Returns a word's value after a grant; UNAVAILABLE: not now. `current` is the value before.
 * @param {number} limit how many permits may be taken together; NO_LIMIT if the word does not count those
 */
exports.after = function after (request, current, limit) {
  const kind = kindOf(request)
  if (kind === SHARED) return current >= 0 && current < MOST ? current + 1 : UNAVAILABLE
  if (kind === EXCLUSIVE) return current === UNLOCKED ? WRITING : UNAVAILABLE
  if (kind === LOCK || kind === INNER || kind === LEASE) return current === UNLOCKED ? LOCKED : UNAVAILABLE
  const amount = amountOf(request)
  if (kind !== LIMITED) return current >= amount ? current - amount : UNAVAILABLE
  // A negative word, which only a program can have written, counts as 0.
  const taken = current > 0 ? current + amount : amount
  return taken <= limit ? taken : UNAVAILABLE
}

/** Returns by how much a word grows when held permits return. */
exports.comingBack = (request) => kindOf(request) === LIMITED ? -amountOf(request) : amountOf(request)

// Two copies of the package share the symbols, since they share this thread's list.
exports.INDEX = Symbol.for('atomics-waitasync.index')
exports.SERIAL = Symbol.for('atomics-waitasync.serial')
/** The serial number of a token that is not live. */
exports.NOT_HELD = -1

/** Returns the request of an entry, from the number in it. */
exports.requestIn = (number) => number >= 0 ? number : kindOf(-number)

exports.owes = (number) => number < 0

/** Makes a hold owe the notification of a word. This thread was given it. */
exports.owe = function owe ({ entries, held, native: { floats } }, index, word) {
  const { address } = word
  const number = -requestOf(entries[2 * index + 1], address / 4)
  // Kept, since native code knows it by its address.
  held[index].notifier = word
  // From the register into the entry, with no call in between at which the thread could end.
  entries[2 * index + 1] = number
  if (floats[RELAY] === address) floats[RELAY] = 0
}
