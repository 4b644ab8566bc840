'use strict'

/**
 * The registers: words through which operands and answers pass between JavaScript and native code. Their layout is that of
 * `Registers` in the native library.
 */

const { Error } = require('../util/intrinsics')

/** How many 32-bit words there are. Settlements are behind them. */
exports.WORDS = 26

// Indexes in a Float64Array on them.
exports.ADDRESS = 0
exports.TIMEOUT = 1
exports.COUNT = 2
/** The address of a word that JavaScript is changing, until its line has been served; otherwise 0. */
exports.RELEASING = 3
/** The address at which an unused notification of this thread goes to another waiter if the thread ends now; otherwise 0. */
exports.RELAY = 4
/** The address at which a blocked thread has been given something that goes to another waiter if the thread ends now; otherwise 0. */
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
/** How many settlements of the current batch are done; negative until what they acquired has its tokens. */
exports.SETTLED = 19
/** Odd while entries of the robust list move; raised by two for each move. */
exports.MOVES = 23
/** How many permits may be taken together, where the kind of request has such a limit. */
exports.LIMIT = 24
/** The number of the stack of the call that claims something, if stalls are reported; see locks/observe/taken.js. */
exports.CALL = 25

// Answers: the numbers of `WaitResult`, of which the first three are results of a wait.
exports.RESULTS = ['ok', 'not-equal', 'timed-out']
/** The wait or claim has been enqueued. */
exports.PENDING = 3
/** From here on, a claim has what it asked for. */
exports.ACQUIRED = 4
exports.ACQUIRED_FROM_DEAD = 5
/** From here on: why an operation could not be carried out. */
const NO_TIMER = exports.NO_TIMER = 6
/** The engine has interrupted what runs, by an exception or in its own way. */
const INTERRUPTED = exports.INTERRUPTED = 8
/** The thread would have waited for ever. */
exports.DEADLOCK = 9

// Answers of `free`. With the last one, AMOUNT has the `threadId` of the holder.
exports.FREED = 0
exports.NOT_LOCKED = 1
exports.HELD_ELSEWHERE = 2

// Answers of `claimName`, besides those of a claim: this thread would wait for itself.
exports.HELD_HERE = 10
exports.AWAITED_HERE = 11

/** The error of an operation with such an answer. If the engine is ending the thread, it does so when this is called. */
exports.operationError = function operationError (answer) {
  return new Error('atomics-waitasync: ' + (
    answer === NO_TIMER ? 'the timer could not be started: the system allows this process no more threads or file descriptors (ulimit -u, ulimit -n)'
      : answer === INTERRUPTED ? 'the wait was interrupted' : 'the operation failed'))
}
