'use strict'

/**
 * How many wait, read from memory that native code counts in: by cache line and word, and of locks that dead threads have left
 * behind. What needs nobody's attention then costs no native call.
 *
 * A counter that is not 0 says that somebody may be waiting; one that is 0 says that nobody is, to who has changed the word
 * and then passed a fence: who waits is counted before it looks at the word (see src/store.rs).
 */

const { TypedArrayLength } = require('./abstract-operations')
const { Int32Array, clz32, imul, load } = require('./intrinsics')

/**
 * Whether a plain read of memory comes after the atomic operation that precedes it in the program: on these processors such
 * an operation is a full fence, and V8 calls a built-in function for it, across which it neither moves nor merges reads.
 * A read then costs one instruction instead of another call.
 */
const FENCED = process.arch === 'x64' || process.arch === 'ia32'

/** Bytes and words of a cache line. */
const LINE = 64
const WORDS = LINE / 4

/** Their memory, or undefined where it cannot be read: some embedders have no buffers from outside, and Node before 15 no
 * `Atomics.load` for memory that is not shared. */
function readable (binding) {
  const buffer = binding.counters()
  if (!buffer) return undefined
  const words = new Int32Array(buffer)
  if (FENCED) return words
  try {
    load(words, 0)
    return words
  } catch (_) {
    return undefined
  }
}

/** The counters, or undefined where they cannot be read: then each question is a native call. */
function createCounters (binding) {
  const words = readable(binding)
  if (words === undefined) return undefined
  // There is one for each word of a cache line, and these lie together.
  const stride = binding.counterWords()
  // Their number is a power of two, but for the one for what is left behind.
  const last = TypedArrayLength(words) / stride - 1
  const shift = clz32(last) + 1

  return {
    /** Where the counter of what is left behind is. */
    abandoned: last * stride,
    /** Where the counter of the word at an address is; as `counter` in src/store.rs. */
    of: (address) => (imul(address / LINE, 0x9e3779b1) >>> shift) * stride + (address / 4 & WORDS - 1),
    /** The counter that is there, as it is after what this thread has written before. */
    read: (counter) => FENCED ? words[counter] : load(words, counter),
    /** The same, for who needs no such order: a value that this thread has come to know of, or a later one. */
    peek: (counter) => words[counter]
  }
}

module.exports = { FENCED, createCounters }
