'use strict'

/**
 * Per-word counters that JavaScript reads directly: waiters, and locks abandoned by dead threads. So an operation that
 * concerns no waiter makes no native call.
 *
 * A waiter is counted before it reads its word (see core/src/queue/counters.rs). So a counter of 0 proves
 * that there is no waiter, to a thread that has changed the word and then passed a fence. Any other number
 * says that there may be one.
 */

const { Int32Array, SharedArrayBuffer, TypedArrayLength, clz32, load } = require('../util/intrinsics')

/** For tests: makes x64 and ia32 take the path of other processors. Deno has to be allowed to read variables. */
const PORTABLE = process.versions.deno === undefined && process.env.ATOMICS_WAITASYNC_PORTABLE !== undefined

/**
 * Whether a plain read cannot overtake an atomic operation before it. On these processors an atomic operation is a full
 * fence, and V8 calls a built-in function for it, across which it neither moves nor merges reads. A read then costs one
 * instruction instead of a call. Bun does not use V8.
 */
const FENCED = !PORTABLE && (process.arch === 'x64' || process.arch === 'ia32') && process.versions.bun === undefined

/**
 * Returns the counters' memory, or a substitute that is never 0. Where JavaScript cannot read the memory, there may
 * always be waiters and abandoned locks: some embedders have no external buffers, and Node before 15 has no
 * `Atomics.load` for memory that is not shared.
 */
function readable (binding) {
  const buffer = FENCED || loadsUnshared() ? binding.counters() : undefined
  if (buffer) return new Int32Array(buffer)
  const unknown = new Int32Array(new SharedArrayBuffer(12))
  unknown[0] = unknown[1] = unknown[2] = 1
  return unknown
}

function loadsUnshared () {
  try {
    load(new Int32Array(1), 0)
    return true
  } catch (_) {
    return false
  }
}

function createCounters (binding) {
  const words = readable(binding)
  // First the counters of waiters, then fewer of abandoned locks; the number of each is a power of two.
  const length = TypedArrayLength(words)
  const mask = (1 << 31 - clz32(length)) - 1
  const left = length - mask - 1

  // As in core/src/queue/counters.rs. `word`: an address in units of four bytes; its lower 32 bits are enough.
  const ofWord = (word) => (word & 1023 ^ word >>> 6 ^ word >>> 4 << 14) & mask

  return {
    words,
    ofWord,
    /** The index of the counter of abandoned locks at an address. Other addresses share the counter. */
    abandonedOf: (address) => mask + 1 + (ofWord(address / 4) & left - 1),
    /** Reads a counter after all earlier writes of this thread. */
    read: (counter) => FENCED ? words[counter] : load(words, counter),
    /**
     * Reads a counter in no particular order. The value is one that this thread has learnt of already, or a later one.
     */
    peek: (counter) => words[counter]
  }
}

module.exports = { FENCED, createCounters }
