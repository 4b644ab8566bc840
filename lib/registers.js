'use strict'

/**
 * The registers: words through which operands and answers pass between JavaScript and native code, and where each is. The
 * layout is that of `Registers` in src/agent.rs.
 */

/** How many 32-bit words there are. What is behind them is for settlements. */
exports.WORDS = 24

// Places in a Float64Array on them.
exports.ADDRESS = 0
exports.TIMEOUT = 1
exports.COUNT = 2
/** The address of a word that JavaScript is changing, until the line has been told; 0 otherwise. */
exports.RELEASING = 3
/**
 * The address at which a notification that this thread has had goes to another waiter, if the thread ends before it has made use
 * of it; 0 if there is none.
 */
exports.RELAY = 4
/**
 * The address at which this thread has blocked and has been given something that goes to another one if this thread ends before it
 * goes on; 0 if there is none.
 */
exports.GIVEN = 10
exports.FLOATS = 11

// Places in an Int32Array on them. EXPECTED takes two for a BigInt64Array. The last one says how much has been given, native code to itself.
exports.EXPECTED = 10
exports.SLOT = 12
exports.WIDE = 13
exports.HELD = 14
exports.PLACE = 15
exports.KIND = 16
exports.AMOUNT = 17
exports.ANSWER = 18
/** How many settlements of the current batch have been settled; negative until what they acquired has its tokens. */
exports.SETTLED = 19

// Answers: the numbers of `WaitResult` in src/store.rs. From ACQUIRED on, a claim has what it asked for.
exports.ACQUIRED = 4
exports.ACQUIRED_FROM_DEAD = 5

// Answers of `free`. With the last one, AMOUNT has the `threadId` of the holder.
exports.FREED = 0
exports.NOT_LOCKED = 1
exports.HELD_ELSEWHERE = 2
