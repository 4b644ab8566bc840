'use strict'

/**
 * Throws the RangeError of a stack overflow if little of the stack is left: before something that must not be interrupted begins.
 * That must have been called before, so that it is compiled.
 */

const NODE_VERSION = require('../../util/node-version')

/**
 * More frames than any sequence that must not be interrupted takes. V8 compiles nothing with less than 40 KB of stack left; and
 * up to Node 16 it throws where it would recompile a function that is called often, instead of using the code that it has.
 */
const FRAMES = NODE_VERSION < 18 ? 900 : 48

module.exports = function requireStack () {
  descend(FRAMES)
}

/** A frame takes 56 bytes at least. */
function descend (frames) {
  return frames === 0 ? 0 : descend(frames - 1) + 1
}
