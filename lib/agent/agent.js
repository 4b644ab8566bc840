'use strict'

/**
 * The agent of this thread: the JavaScript half of its wait queue. It also keeps the event loop alive while waits are
 * pending. `find-agent.js` requires this file when a thread first uses the queue.
 */

const { createMap } = require('../util/intrinsics')
const { assertKilobytes, stackKilobytes } = require('../util/stack')
const { DUMP } = require('../util/variables')
const { isMainThread } = require('../util/worker-threads')
const blocking = require('./blocking')
const door = require('./door')
const native = require('./registers-view')
const { ADDRESS, ANSWER, COUNT } = require('./registers')
const watchLoop = require('./runs-dry')
const slots = require('./slots')
const turns = require('./turns')

const { binding, counters, floats, operations, words } = native

/**
 * Kilobytes of stack that an operation needs. V8 needs 40 to compile a function, and compiles none with less; an
 * operation of the package takes few.
 */
const ENOUGH = 64
/** Additional kilobytes to ask for. So an operation that asks again further down is not refused. */
const SPARE = 8

/** Half of the stack, in bytes. */
const HALF = 512 * stackKilobytes()

/** The lowest address in the stack at which enough was left. */
let lowest = Infinity
/** The highest address in the stack that was seen: about where it begins. */
let highest = 0

/** The Steps of each promise. */
const stepsOf = createMap()

/** Throws a stack overflow unless enough stack for an operation is left. Returns whether more than half is in use. */
function assertStack () {
  operations.depth()
  const here = floats[ADDRESS]
  if (here < lowest) {
    assertKilobytes(ENOUGH + SPARE)
    lowest = here - 1024 * SPARE
  }
  if (here > highest) highest = here
  return highest - here > HALF
}

function notify (address, count) {
  floats[ADDRESS] = address
  floats[COUNT] = count
  operations.notify()
  return words[ANSWER] >>> 0
}

/** Notifies, but makes no native call if no waiter is counted: `mayBeWaiting`. */
function notifyWaiting (address, count) {
  return mayBeWaiting(address / 4) ? notify(address, count) : 0
}

/**
 * Whether a word, an address divided by four, may have waiters. "No" is only certain for a caller that has changed the
 * word and passed a fence since.
 */
function mayBeWaiting (word) {
  return counters.read(counters.ofWord(word)) !== 0
}

function waiterCount (address) {
  floats[ADDRESS] = address
  operations.waiterCount()
  return words[ANSWER]
}

/**
 * Returns the `threadId` of a thread that holds a word; null if none. Only holds by means of this package are known.
 */
function holderOf (address) {
  floats[ADDRESS] = address
  const holder = binding.holder()
  return typeof holder === 'number' ? holder : null
}

/** Lets `ref` and `unref` find the Steps of a promise, until `forgetSteps`: between two of them it has no slot. */
function rememberSteps (promise, steps) {
  steps.promise = promise
  stepsOf.set(promise, steps)
}

function forgetSteps (steps) {
  if (steps.promise !== undefined) stepsOf.delete(steps.promise)
}

function setRefed (promise, refed) {
  const steps = stepsOf.get(promise)
  return steps !== undefined ? steps.setRefed(refed) : slots.setPromiseRefed(promise, refed)
}

/** Arms the signal that the variable names, and returns it. If it cannot be had, one thread of the process warns. */
function armDumps () {
  try {
    const signal = binding.armDumps(process.versions.bun === undefined && process.versions.deno === undefined)
    return typeof signal === 'string' ? signal : undefined
  } catch (error) {
    process.emitWarning(error.message, { code: DUMP })
    return undefined
  }
}

/**
 * The longest delay of a settlement in Deno, in milliseconds. Its event loop may lose a wake-up. Seen in 2.9, with
 * calls of threadsafe functions: the loop looks for calls, then says that it wants to be woken, and a call between the
 * two is only found in its next turn. A timer makes it turn.
 */
const DENO_TURN = 20

if (process.versions.deno !== undefined) setInterval(() => {}, DENO_TURN).unref()
native.dumpSignal = armDumps()
watchLoop()
if (!isMainThread && (native.stallAfter !== 0 || native.dumpSignal !== undefined)) require('./ends')(binding)
assertStack()

module.exports = {
  native, door, assertStack,
  addressOf: binding.addressOf,
  notify, notifyWaiting, mayBeWaiting, waiterCount, holderOf, setRefed, rememberSteps, forgetSteps, ...blocking,
  ...slots, ...turns,
  /** The robust list, once this thread has made its first lock: see holding/robust-list.js. */
  robustList: undefined
}
