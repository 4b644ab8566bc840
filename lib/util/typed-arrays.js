'use strict'

/**
 * Reads typed arrays and SharedArrayBuffers of any realm by built-in getters. No property of theirs can shadow these.
 */

const {
  apply, getBuffer, getByteOffset, getGrowable, getLength, getMaxByteLength, getSharedByteLength, isFrozen
} = require('./intrinsics')

/** https://tc39.es/ecma262/#sec-issharedarraybuffer */
exports.IsSharedArrayBuffer = function IsSharedArrayBuffer (buffer) {
  try {
    apply(getSharedByteLength, buffer, [])
    return true
  } catch (_) {
    return false
  }
}

/** https://tc39.es/ecma262/#sec-typedarraylength */
exports.TypedArrayLength = function TypedArrayLength (typedArray) {
  return apply(getLength, typedArray, [])
}

exports.viewedArrayBuffer = (typedArray) => apply(getBuffer, typedArray, [])
exports.byteOffset = (typedArray) => apply(getByteOffset, typedArray, [])
exports.sharedByteLength = (buffer) => apply(getSharedByteLength, buffer, [])
/** The length that a SharedArrayBuffer may grow to. */
exports.maxByteLength = (buffer) => apply(getMaxByteLength || getSharedByteLength, buffer, [])
/**
 * Whether a SharedArrayBuffer is the memory of a WebAssembly module. The JavaScript API of WebAssembly says that
 * such a buffer is frozen. In another thread the buffer is frozen if its memory was posted, and not if the
 * buffer was posted alone.
 */
exports.isWebAssemblyMemory = (buffer) => isFrozen(buffer)
exports.isGrowable = (buffer) => getGrowable !== undefined && apply(getGrowable, buffer, [])
