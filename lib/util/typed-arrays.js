'use strict'

/** Reads typed arrays and SharedArrayBuffers of any realm. No property of theirs can mislead it. */

const {
  bufferOf, byteOffsetOf, growableOf, isFrozen, lengthOf, maxByteLengthOf, sharedByteLengthOf
} = require('./intrinsics')

/** https://tc39.es/ecma262/#sec-issharedarraybuffer */
exports.IsSharedArrayBuffer = function IsSharedArrayBuffer (buffer) {
  try {
    sharedByteLengthOf(buffer)
    return true
  } catch (_) {
    return false
  }
}

/** https://tc39.es/ecma262/#sec-typedarraylength */
exports.TypedArrayLength = lengthOf

exports.viewedArrayBuffer = bufferOf
exports.byteOffset = byteOffsetOf
exports.sharedByteLength = sharedByteLengthOf
/** The length that a SharedArrayBuffer may grow to. */
exports.maxByteLength = maxByteLengthOf || sharedByteLengthOf
/**
 * Whether a SharedArrayBuffer is the memory of a WebAssembly module. The JavaScript API of WebAssembly says that
 * such a buffer is frozen. In another thread the buffer is frozen if its memory was posted, and not if the
 * buffer was posted alone.
 */
exports.isWebAssemblyMemory = isFrozen
exports.isGrowable = growableOf || (() => false)
