'use strict'

/**
 * Throws the RangeError of a stack overflow if little of the stack is left: before something that must not be interrupted begins.
 */

const NODE_VERSION = require('./node-version')

/** With 32 bits a frame takes half as much of the stack: so many times as many are needed. */
const MORE = process.arch === 'arm' || process.arch === 'ia32' ? 2 : 1
/** More frames than any sequence that must not be interrupted takes. */
const FRAMES = 48 * MORE
/** So many frames take more than V8 needs to compile: it compiles nothing with less than 40 KB of stack left. */
const COMPILING_FRAMES = 900 * MORE
/** Up to Node 16, V8 throws where it would recompile a function that is called often, instead of using the code that it has. */
const RECOMPILES = NODE_VERSION < 18

/** @param {boolean} [isCompiled] whether what begins has been called before */
module.exports = function requireStack (isCompiled = true) {
  descend(isCompiled && !RECOMPILES ? FRAMES : COMPILING_FRAMES)
}

/** With 64 bits, a frame takes 56 bytes at least. */
function descend (frames) {
  return frames === 0 ? 0 : descend(frames - 1) + 1
}
