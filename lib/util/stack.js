'use strict'

/**
 * Throws a stack overflow unless so much stack is left. Called before steps that a stack overflow must not interrupt.
 *
 * The engine compares the size of a call's arguments with the stack that is left. Counting frames would not do: an
 * optimized frame takes a fraction of another.
 */

const { Array } = require('./global')

const { apply } = Reflect
/** An argument takes as many bytes as an address. */
const ARGUMENTS_PER_KILOBYTE = process.arch === 'arm' || process.arch === 'ia32' ? 256 : 128

function assertKilobytes (kilobytes) {
  apply(() => {}, undefined, new Array(kilobytes * ARGUMENTS_PER_KILOBYTE))
}

/** Throws without the stack for loading code and starting the agent. These take half as much on any Node. */
const assertStackToLoad = () => assertKilobytes(128)

module.exports = { assertKilobytes, assertStackToLoad }
