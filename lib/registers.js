'use strict'

/**
 * The registers: words through which operands and answers pass between JavaScript and native code, and where each is. The
 * layout is that of `Registers` in src/agent.rs.
 */

/** How many 32-bit words there are. What is behind them is for settlements. */
exports.WORDS = 18

// Places in a Float64Array on them.
exports.ADDRESS = 0
exports.TIMEOUT = 1
exports.COUNT = 2
/** The address of a word that JavaScript is changing, until the line has been told; 0 otherwise. */
exports.RELEASING = 3
exports.FLOATS = 4

// Places in an Int32Array on them. EXPECTED takes two for a BigInt64Array.
exports.EXPECTED = 8
exports.SLOT = 10
exports.WIDE = 11
exports.HELD = 12
exports.PLACE = 13
exports.KIND = 14
exports.AMOUNT = 15
exports.RELAYED = 16
exports.ANSWER = 17
