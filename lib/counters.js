'use strict'

/**
 * How many wait, read from memory that native code counts in: by bucket and word, and, by bucket, how many locks dead threads have
 * left behind. What needs nobody's attention then costs no native call.
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
  // There is one for each word of a cache line, and these lie together. Then come those of what is left behind, in as many lines.
  const stride = binding.counterWords()
  // How many buckets there are, a power of two: more than half of the lines.
  const shift = clz32(TypedArrayLength(words) / stride) + 1
  const buckets = 2 ** (32 - shift)
  const bucketOf = (address) => imul(address / LINE, 0x9e3779b1) >>> shift

  return {
    /** Where the counter of the word at an address is; as `counter` in src/store.rs. */
    of: (address) => bucketOf(address) * stride + (address / 4 & WORDS - 1),
    /** Where the counter is of what is left behind in the bucket of an address; as `abandoned` in src/store.rs. */
    abandonedOf (address) {
      const bucket = bucketOf(address)
      return (buckets + (bucket / WORDS | 0)) * stride + bucket % WORDS
    },
    /** The counter that is there, as it is after what this thread has written before. */
    read: (counter) => FENCED ? words[counter] : load(words, counter),
    /** The same, for who needs no such order: a value that this thread has come to know of, or a later one. */
    peek: (counter) => words[counter]
  }
}

module.exports = { FENCED, createCounters }
