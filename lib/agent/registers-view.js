'use strict'

/**
 * The native half of this thread's agent: the registers, the operations on them, and the functions that it calls.
 *
 * Only `agent.js` and the files that it requires may require this file: it is for the thread's agent, of which all
 * copies of the package make one. So these modules have the registers as constants. To read them from an object would
 * cost a sixth of a lock.
 */

const { LEAVES_EXCEPTIONS } = require('../util/quirks')
const { BigInt64Array, Float64Array, Int32Array, define, keys } = require('../util/intrinsics')
const { describe } = require('../util/values')
const { STALL } = require('../util/variables')
const { inRootContext } = require('./load-binding')
const {
  ADDRESS, AMOUNT, ANSWER, EXPECTED, INTERRUPTED, KIND, LIMIT, NEWS, TIMEOUT, WIDE, WORDS, createCounters
} = require('./registers')
const { started } = require('./start-agent')

const { binding, buffer } = started
const floats = new Float64Array(buffer, 0, WORDS / 2)
const words = new Int32Array(buffer)
const expected = BigInt64Array !== undefined ? new BigInt64Array(buffer, 4 * EXPECTED, 1) : null

/** A number that is no operation's answer. */
const UNANSWERED = -1

const native = {
  binding,
  counters: createCounters(binding),
  floats,
  operations: LEAVES_EXCEPTIONS ? shielded(started.operations, words) : started.operations,
  words,
  inRootContext,
  /** After how many milliseconds a wait is reported; 0: never. */
  stallAfter: stallAfter(),
  /** The signal that writes snapshots, if there is one. */
  dumpSignal: undefined,
  /** Whether an install leaves this thread's Workers to the host's queue. */
  besideHost: false,
  settle: undefined,
  onSteal: undefined,
  onReports: undefined,
  /** Delivers answers about locks of files, once there are requests (lib/processes/engines/files.js). */
  files: undefined,
  /** Called when the event loop has turned for promises that awaited it: see `slots.js`. */
  onTurn: undefined,
  writeRequest,
  writeWait
}

/**
 * Settles a batch of promises, or asks for news: of a turn of the event loop, of stolen names, and of reports that this
 * thread is to publish.
 */
function deliver (count) {
  if (count !== NEWS) {
    native.settle(count)
    return
  }
  if (native.files !== undefined) native.files.deliver()
  if (native.onTurn !== undefined) native.onTurn()
  if (native.onSteal !== undefined) native.onSteal()
  if (native.onReports !== undefined) native.onReports()
}

/** Writes the operands of a wait. The expected value has 64 bits if it is `wide`. */
function writeWait (address, timeout, wide, value) {
  floats[ADDRESS] = address
  floats[TIMEOUT] = timeout
  words[WIDE] = wide ? 1 : 0
  if (wide) expected[0] = value
  else words[EXPECTED] = value
}

/** Writes the operands of a claim. */
function writeRequest (word, kind, amount, timeout) {
  floats[ADDRESS] = word.address
  floats[TIMEOUT] = timeout
  words[KIND] = kind
  words[AMOUNT] = amount
  words[LIMIT] = word.limit
}

/** Reads `ATOMICS_WAITASYNC_STALL`. An invalid value counts as 0, and one thread of the process warns of it. */
function stallAfter () {
  const milliseconds = binding.stallAfter()
  if (typeof milliseconds === 'number') return milliseconds
  const problem = ' must be a whole number of milliseconds from 0 to 2147483647, not '
  process.emitWarning(STALL + problem + describe(process.env[STALL]), { code: STALL })
  return 0
}

/** Wraps the operations so that they throw only if they failed: this Node may leave an exception behind. */
function shielded (operations, words) {
  const shields = {}
  const names = keys(operations)
  for (let n = 0; n < names.length; n++) {
    const operation = operations[names[n]]
    define(shields, names[n], (first, second) => {
      words[ANSWER] = UNANSWERED
      try {
        operation(first, second)
      } catch (error) {
        if (words[ANSWER] === UNANSWERED || words[ANSWER] === INTERRUPTED) throw error
      }
    })
  }
  return shields
}

started.deliver = deliver

module.exports = native
