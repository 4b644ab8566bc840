'use strict'

/**
 * Throws the RangeError of a stack overflow if little of the stack is left: before something that must not be interrupted begins.
 */

const NODE_VERSION = require('./node-version')

/** More frames than any sequence that must not be interrupted takes. */
const FRAMES = 48
/** So many frames take more than V8 needs to compile: it compiles nothing with less than 40 KB of stack left. */
const COMPILING_FRAMES = 900
/** Up to Node 16, V8 throws where it would recompile a function that is called often, instead of using the code that it has. */
const RECOMPILES = NODE_VERSION < 18

/** @param {boolean} [isCompiled] whether what begins has been called before */
module.exports = function requireStack (isCompiled = true) {
  descend(isCompiled && !RECOMPILES ? FRAMES : COMPILING_FRAMES)
}

/** A frame takes 56 bytes at least. */
function descend (frames) {
  return frames === 0 ? 0 : descend(frames - 1) + 1
}
