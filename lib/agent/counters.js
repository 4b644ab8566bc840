'use strict'

/**
 * The counters that native code keeps in memory which JavaScript can read: of waiters, and of the locks that dead threads have left
 * behind, both by word. So an operation that concerns no waiter makes no native call.
 *
 * A waiter is counted before it reads its word (see core/src/queue/counters.rs). So a counter of 0 proves that there is no waiter, to a
 * thread that has changed the word and then passed a fence. Any other number says that there may be one.
 */

const { Int32Array, SharedArrayBuffer, clz32, load } = require('../util/intrinsics')
const { TypedArrayLength } = require('../util/typed-arrays')

/** For tests: with this variable, these processors take the path of the others, too. Deno has to be allowed to read variables. */
const PORTABLE = process.versions.deno === undefined && process.env.ATOMICS_WAITASYNC_PORTABLE !== undefined

/**
 * Whether a plain read cannot overtake an atomic operation that precedes it in the program. On these processors such an operation
 * is a full fence, and V8 calls a built-in function for it, across which it neither moves nor merges reads. A read then costs one
 * instruction instead of a call. Bun does not use V8.
 */
const FENCED = !PORTABLE && (process.arch === 'x64' || process.arch === 'ia32') && process.versions.bun === undefined

/**
 * The counters' memory. Where JavaScript cannot read it, there may always be a waiter, and something left behind: some embedders have no
 * external buffers, and Node before 15 has no `Atomics.load` for memory that is not shared.
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
  // The counters of waiters, a power of two; behind them, fewer, those of what is left behind, another one.
  const length = TypedArrayLength(words)
  const mask = (1 << 31 - clz32(length)) - 1
  const left = length - mask - 1

  // As in core/src/queue/counters.rs. `word`: an address in units of four bytes; its lower 32 bits are enough.
  const ofWord = (word) => (word & 1023 ^ word >>> 6 ^ word >>> 4 << 14) & mask

  return {
    words,
    ofWord,
    /** The index of the counter of what is left behind at an address, and at others. */
    abandonedOf: (address) => mask + 1 + (ofWord(address / 4) & left - 1),
    /** A counter's value, read after all that this thread has written before. */
    read: (counter) => FENCED ? words[counter] : load(words, counter),
    /** A counter's value, in no particular order: one that this thread has learnt of already, or a later one. */
    peek: (counter) => words[counter]
  }
}

module.exports = { FENCED, createCounters }
