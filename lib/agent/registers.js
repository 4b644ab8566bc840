'use strict'

/**
 * The memory by which JavaScript and native code speak: the registers, and the counters.
 *
 * The registers are words that carry operands and answers. Their layout is that of `Registers` in native code.
 *
 * The counters are of waiters, and of locks abandoned by dead threads, by word. JavaScript reads them directly, so an
 * operation that concerns no waiter makes no native call. A waiter is counted before it reads its word (see
 * core/src/queue/counters.rs). So a counter of 0 proves that there is no waiter, to a thread that has changed the word
 * and then passed a fence. Any other number says that there may be one.
 */

const { Error, Int32Array, SharedArrayBuffer, TypedArrayLength, clz32, load } = require('../util/intrinsics')

/** How many 32-bit words there are. Settlements are behind them. */
exports.WORDS = 26
/** How many settlements native code delivers at once. */
exports.BATCH = 4096

// Indexes in a Float64Array on them. core/src/held/registers.rs says of each what it is for.
exports.ADDRESS = 0
exports.TIMEOUT = 1
exports.COUNT = 2
exports.RELEASING = 3
exports.RELAY = 4
exports.GIVEN = 10

// Indexes in an Int32Array on them. EXPECTED takes two words for a BigInt64Array. Native code keeps word 22 for itself.
exports.EXPECTED = 10
exports.SLOT = 12
exports.WIDE = 13
exports.HELD = 14
exports.ENTRY = 15
exports.KIND = 16
exports.AMOUNT = 17
exports.ANSWER = 18
exports.SETTLED = 19
exports.MOVES = 23
exports.LIMIT = 24
exports.CALL = 25

// Answers: the numbers of native code's `Answer`. The first three are results of a wait; a granted claim has none.
exports.RESULTS = ['ok', 'not-equal', 'timed-out', undefined, undefined, undefined]
exports.PENDING = 3
/** From here on, a claim is granted. */
exports.ACQUIRED = 4
exports.ACQUIRED_FROM_DEAD = 5
/** From here on: why an operation could not be carried out. */
const NO_TIMER = exports.NO_TIMER = 6
/** The engine has interrupted JavaScript, by an exception or otherwise. */
const INTERRUPTED = exports.INTERRUPTED = 8
exports.DEADLOCK = 9

// Answers of `free`. With the last one, AMOUNT has the `threadId` of the holder.
exports.FREED = 0
exports.NOT_LOCKED = 1
exports.HELD_ELSEWHERE = 2

// An answer of `claimName`, besides those of a claim: this thread holds the name itself.
exports.HELD_HERE = 10

/** In the place of how many settlements there are: this thread asks for news (`onTurn`, `onSteal`, `onReports`). */
exports.NEWS = 0

const NO_TIMER_TEXT = 'the timer could not be started: the system allows this process no more threads or file ' +
  'descriptors (ulimit -u, ulimit -n)'

/** Makes the error for such an answer. If the engine is ending the thread, it does so when this is called. */
exports.operationError = function operationError (answer) {
  return new Error('atomics-waitasync: ' + (
    answer === NO_TIMER ? NO_TIMER_TEXT : answer === INTERRUPTED ? 'the wait was interrupted' : 'the operation failed'))
}

/** For tests: makes x64 and ia32 take the path of other processors. Deno has to be allowed to read variables. */
const PORTABLE = process.versions.deno === undefined && process.env.ATOMICS_WAITASYNC_PORTABLE !== undefined

/**
 * Whether a plain read cannot overtake an atomic operation before it. On these processors an atomic operation is a full
 * fence, and V8 calls a built-in function for it, across which it neither moves nor merges reads. A read then costs one
 * instruction instead of a call. Bun does not use V8.
 */
const FENCED = exports.FENCED =
  !PORTABLE && (process.arch === 'x64' || process.arch === 'ia32') && process.versions.bun === undefined

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

exports.createCounters = function createCounters (binding) {
  const words = readable(binding)
  // First the counters of waiters, then fewer of abandoned locks; the number of each is a power of two.
  const length = TypedArrayLength(words)
  const mask = (1 << 31 - clz32(length)) - 1
  const left = length - mask - 1

  // As in core/src/queue/counters.rs. `word`: an address in units of four bytes; its lower 32 bits are enough.
  const ofWord = (word) => (word & 1023 ^ word >>> 6 ^ word >>> 4 << 14) & mask

  return {
    /** To read a counter in no particular order. The value is one that this thread knows already, or a later one. */
    words,
    ofWord,
    /** The index of the counter of abandoned locks at an address. Other addresses share the counter. */
    abandonedOf: (address) => mask + 1 + (ofWord(address / 4) & left - 1),
    /** Reads a counter after all earlier writes of this thread. */
    read: (counter) => FENCED ? words[counter] : load(words, counter)
  }
}
