'use strict'

/**
 * How many frames are more than what follows takes. V8 compiles nothing where less than 40 KB of the stack are left; and up to Node 16 it
 * throws where it would compile anew what has been called often, instead of going on with what it has.
 */
const FRAMES = parseInt(process.versions.node) < 18 ? 900 : 48

/**
 * Throws the RangeError of a stack overflow, where little of the stack is left, before something begins that must not be broken off in its
 * midst. For what has been called before: it is compiled.
 */
module.exports = function requireStack () {
  descend(FRAMES)
}

/** Takes 56 bytes for a frame at least. */
function descend (frames) {
  return frames === 0 ? 0 : descend(frames - 1) + 1
}
