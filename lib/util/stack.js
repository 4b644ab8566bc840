'use strict'

/**
 * Throws the RangeError of a stack overflow unless so much of the stack is left: before something that must not be interrupted.
 *
 * The engine compares what a call passes with the stack that is left. To count frames would not do: an optimized frame takes a fraction of
 * another.
 */

const { Array } = require('./global')

const { apply } = Reflect
/** An argument takes as many bytes as an address. */
const ARGUMENTS_PER_KILOBYTE = process.arch === 'arm' || process.arch === 'ia32' ? 256 : 128

function assertKilobytes (kilobytes) {
  apply(ignore, undefined, new Array(kilobytes * ARGUMENTS_PER_KILOBYTE))
}

function ignore () {}

/** For loading code of the package and for starting the agent, which take half as much on any Node. */
const assertStackToLoad = () => assertKilobytes(128)

module.exports = { assertKilobytes, assertStackToLoad }
