'use strict'

/**
 * The registers: words that carry operands and answers to and from native code. Their layout is that of
 * `Registers` in the native library.
 */

const { Error } = require('../util/intrinsics')

/** How many 32-bit words there are. Settlements are behind them. */
exports.WORDS = 26
/** How many settlements native code delivers at once. */
exports.BATCH = 4096

// Indexes in a Float64Array on them.
exports.ADDRESS = 0
exports.TIMEOUT = 1
exports.COUNT = 2
/**
 * The address of a word that JavaScript is changing; otherwise 0. It stays there until the word's line has been served.
 * Negative if no entry of the robust list leaves with that, or if it has left.
 */
exports.RELEASING = 3
/**
 * The address of this thread's unused notification; otherwise 0. If the thread ends now, the notification goes
 * to another waiter there.
 */
exports.RELAY = 4
/**
 * The address of a blocked thread's provisional grant; otherwise 0. If the thread ends now, the grant goes
 * to another waiter there.
 */
exports.GIVEN = 10
exports.FLOATS = 11

// Indexes in an Int32Array on them. EXPECTED takes two words for a BigInt64Array. Native code keeps word 22 for itself.
exports.EXPECTED = 10
exports.SLOT = 12
exports.WIDE = 13
exports.HELD = 14
exports.ENTRY = 15
exports.KIND = 16
exports.AMOUNT = 17
exports.ANSWER = 18
/** How many settlements of the current batch are done. Negative until the holds of the batch have their tokens. */
exports.SETTLED = 19
/** Odd while entries of the robust list move; raised by two for each move. */
exports.MOVES = 23
/** The semaphore's limit, for a kind of request that has one. */
exports.LIMIT = 24
/** The number of the claiming call's stack, if stalls are reported. See observe/hold-calls.js. */
exports.CALL = 25

// Answers: the numbers of `WaitResult`. The first three are results of a wait; a claim that is granted has none.
exports.RESULTS = ['ok', 'not-equal', 'timed-out', undefined, undefined, undefined]
/** The wait or claim has been enqueued. */
exports.PENDING = 3
/** From here on, a claim is granted. */
exports.ACQUIRED = 4
exports.ACQUIRED_FROM_DEAD = 5
/** From here on: why an operation could not be carried out. */
const NO_TIMER = exports.NO_TIMER = 6
/** The engine has interrupted JavaScript, by an exception or otherwise. */
const INTERRUPTED = exports.INTERRUPTED = 8
/** The thread would have waited for ever. */
exports.DEADLOCK = 9

// Answers of `free`. With the last one, AMOUNT has the `threadId` of the holder.
exports.FREED = 0
exports.NOT_LOCKED = 1
exports.HELD_ELSEWHERE = 2

// An answer of `claimName`, besides those of a claim: this thread holds the name itself.
exports.HELD_HERE = 10

/** In the place of how many settlements there are: this thread asks for news (`onTurn`, `onSteal`, `onReports`). */
exports.NEWS = 0

const NO_TIMER_TEXT = 'the timer could not be started: the system allows this process no more threads or file ' +
  'descriptors (ulimit -u, ulimit -n)'

/** Makes the error for such an answer. If the engine is ending the thread, it does so when this is called. */
exports.operationError = function operationError (answer) {
  return new Error('atomics-waitasync: ' + (
    answer === NO_TIMER ? NO_TIMER_TEXT : answer === INTERRUPTED ? 'the wait was interrupted' : 'the operation failed'))
}
