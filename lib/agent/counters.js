'use strict'

/**
 * The counters that native code keeps in memory which JavaScript can read: of waiters, by bucket and word, and of the locks that
 * dead threads have left behind, by bucket. So an operation that concerns no waiter makes no native call.
 *
 * A waiter is counted before it reads its word (see src/queue/store.rs). So a counter of 0 proves that there is no waiter, to a
 * thread that has changed the word and then passed a fence. Any other number says that there may be one.
 */

const { Int32Array, clz32, imul, load } = require('../util/intrinsics')
const { TypedArrayLength } = require('../util/typed-arrays')

/** For tests: with this variable set, the path of other processors is taken on these, too. Deno has to be allowed to read variables. */
const PORTABLE = process.versions.deno === undefined && process.env.ATOMICS_WAITASYNC_PORTABLE !== undefined

/**
 * Whether a plain read cannot overtake an atomic operation that precedes it in the program. On these processors such an operation
 * is a full fence, and V8 calls a built-in function for it, across which it neither moves nor merges reads. A read then costs one
 * instruction instead of a call. Bun's engine is another.
 */
const FENCED = !PORTABLE && (process.arch === 'x64' || process.arch === 'ia32') && process.versions.bun === undefined

/** Bytes and words of a cache line. */
const LINE = 64
const WORDS = LINE / 4

/**
 * The counters' memory; undefined where JavaScript cannot read it: some embedders have no external buffers, and Node before 15
 * has no `Atomics.load` for memory that is not shared.
 */
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

/** The counters; undefined where they cannot be read: then each question is a native call. */
function createCounters (binding) {
  const words = readable(binding)
  if (words === undefined) return undefined
  // Each bucket has one line of counters, one for each word of a cache line. As many lines follow for what is left behind.
  const stride = binding.counterWords()
  // The number of buckets is a power of two: more than half of the lines.
  const shift = clz32(TypedArrayLength(words) / stride) + 1
  const buckets = 2 ** (32 - shift)
  const bucketOf = (address) => imul(address / LINE, 0x9e3779b1) >>> shift

  return {
    /** The index of the counter for the word at an address; as `counter` in src/queue/store.rs. */
    of: (address) => bucketOf(address) * stride + (address / 4 & WORDS - 1),
    /** The index of the counter of what is left behind in an address's bucket; as `abandoned` in src/queue/store.rs. */
    abandonedOf (address) {
      const bucket = bucketOf(address)
      return (buckets + (bucket / WORDS | 0)) * stride + bucket % WORDS
    },
    /** A counter's value, read after all that this thread has written before. */
    read: (counter) => FENCED ? words[counter] : load(words, counter),
    /** A counter's value, in no particular order: one that this thread has learnt of already, or a later one. */
    peek: (counter) => words[counter]
  }
}

module.exports = { FENCED, createCounters }
