'use strict'

/**
 * The agent of this thread: the JavaScript half of its wait queue. It also keeps the event loop alive while waits are
 * pending. It is made at the first use of the queue, and all copies of the package in the thread share it.
 */

const { LEAVES_EXCEPTIONS, SHARES_END_SIGNAL } = require('../util/quirks')
const { assertKilobytes, assertStackToLoad } = require('../util/stack')
const {
  ArrayBuffer, BigInt64Array, Float64Array, Int32Array, createMap, define, getOwnPropertyDescriptor
} = require('../util/intrinsics')
const { threadId, threadName } = require('../util/worker-threads')
const { load } = require('./binding')
const createBlocking = require('./blocking')
const { createCounters } = require('./counters')
const shielded = require('./operations')
const { ADDRESS, ANSWER, COUNT, EXPECTED, FLOATS, NEWS, WORDS } = require('./registers')
const watchLoop = require('./runs-dry')
const { armDumps, stallAfter, startProfile } = require('./settings')
const createSlots = require('./slots')
const startingWorkers = require('./starting-workers')

/**
 * Kilobytes of stack that an operation needs. V8 needs 40 to compile a function, and compiles none with less; an
 * operation of the package takes few.
 */
const ENOUGH = 64
/** Additional kilobytes to ask for. So an operation that asks again further down is not refused. */
const SPARE = 8

/** How many settlements native code delivers at once. */
const BATCH = 4096

/**
 * How an event loop learns of its thread's end. Native code has the same numbers (`EndSignal`). Bun has functions with
 * libuv's names, but not its event loop.
 */
const [UNKNOWN, SHARED, OWN] = [0, 1, 2]
const endSignal = process.versions.bun !== undefined ? UNKNOWN : SHARES_END_SIGNAL ? SHARED : OWN

function createAgent (binding) {
  const buffer = new ArrayBuffer(4 * (WORDS + BATCH))
  const floats = new Float64Array(buffer, 0, FLOATS)
  const words = new Int32Array(buffer)
  const expected = BigInt64Array !== undefined ? new BigInt64Array(buffer, 4 * EXPECTED, 1) : null
  const started = binding.start(buffer, deliver, tick, threadId, threadName, endSignal)
  const operations = LEAVES_EXCEPTIONS ? shielded(started, words) : started
  const counters = createCounters(binding)
  // `onSteal`: called when a named lock was stolen from this thread; see locks/named/names.js. `besideHost`: whether an
  // install in this thread leaves its Workers to the host's queue. `onReports`: see locks/observe/stalls.js.
  // `stallAfter`: after how many milliseconds a wait is reported; 0: never. `profiles`: whether waits are recorded.
  // `onTick`: what `tick` calls.
  const native = {
    binding,
    counters,
    expected,
    floats,
    operations,
    words,
    onSteal: undefined,
    onReports: undefined,
    besideHost: false,
    stallAfter: stallAfter(binding),
    profiles: startProfile(binding),
    onTick: undefined,
    inRootContext: (run) => { inRootContext(binding, run) }
  }
  const slots = createSlots(native)
  const blocking = createBlocking(native)
  // The Steps of each promise.
  const stepsOf = createMap()
  // The lowest address in the stack at which enough of it was left.
  let lowest = Infinity

  /** Settles a batch of promises, or asks for news: of stolen names, and of reports that this thread is to publish. */
  function deliver (count) {
    if (count !== NEWS) {
      slots.settle(count)
      return
    }
    if (native.onSteal !== undefined) native.onSteal()
    if (native.onReports !== undefined) native.onReports()
  }

  /**
   * Runs between two slices of a blocking wait, called by native code. It also runs before the first
   * slice of `waitGivingBack`. It calls `onTick`; and the engine can interrupt the thread here, as
   * wherever a function is called.
   */
  function tick () {
    try {
      if (native.onTick !== undefined) native.onTick()
    } catch (_) {
      // No stack is left for a report, or nothing that could receive it. The wait must not end for that.
    }
  }

  /** Throws a stack overflow unless enough stack for an operation is left. */
  function assertStack () {
    operations.depth()
    const here = floats[ADDRESS]
    if (here >= lowest) return
    assertKilobytes(ENOUGH + SPARE)
    lowest = here - 1024 * SPARE
  }

  function notify (address, count) {
    floats[ADDRESS] = address
    floats[COUNT] = count
    operations.notify()
    return words[ANSWER] >>> 0
  }

  /**
   * Notifies, but makes no native call if no waiter is counted. The count is only certain for a caller that has changed
   * the word and passed a fence since.
   */
  function notifyWaiting (address, count) {
    return mayBeWaiting(address / 4) ? notify(address, count) : 0
  }

  /**
   * Whether a word, an address divided by four, may have waiters. "No" is certain under the
   * condition of `notifyWaiting`.
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

  /** Lets a pending promise keep the event loop alive, or not. False if it is not pending in this thread. */
  function setRefed (promise, refed) {
    const steps = stepsOf.get(promise)
    return steps !== undefined ? steps.setRefed(refed) : slots.setPromiseRefed(promise, refed)
  }

  if (process.versions.deno !== undefined) wakeInDeno()
  armDumps(binding)
  watchLoop(native, slots)

  return {
    native,
    assertStack,
    addressOf: binding.addressOf,
    notify,
    notifyWaiting,
    mayBeWaiting,
    waiterCount,
    holderOf,
    setRefed,
    rememberSteps,
    forgetSteps,
    ...blocking,
    ...slots,
    /** The robust list, once this thread has made its first lock: see locks/hold/robust-list.js. */
    robustList: undefined
  }
}

/** The longest delay of a settlement in Deno, in milliseconds. */
const DENO_TURN = 20

/**
 * Makes Deno's event loop turn, which may lose a wake-up. Seen in 2.9, with calls of threadsafe functions: the loop
 * looks for calls, then says that it wants to be woken, and a call between the two is only found in its next turn.
 * This timer makes it turn.
 */
function wakeInDeno () {
  setInterval(() => {}, DENO_TURN).unref()
}

let current

/**
 * Runs a function outside of the asynchronous context of its caller. Otherwise the agent, which lives as long
 * as the thread, would keep the context of the first caller, and settlements would run in it. Other runtimes
 * than Node have no such call.
 */
function inRootContext (binding, run) {
  if (process.versions.bun !== undefined || process.versions.deno !== undefined) run()
  else binding.inRootContext(run)
}

/**
 * Returns this thread's agent, and makes it first if necessary. It is a property of the native library's exports, so
 * that all copies of the package find it.
 */
function agent () {
  if (current === undefined) {
    assertStackToLoad()
    const binding = load()
    // Not an inherited property.
    if (getOwnPropertyDescriptor(binding, 'agent') === undefined) {
      inRootContext(binding, () => define(binding, 'agent', createAgent(binding)))
    }
    current = binding.agent
    startingWorkers.tell(binding)
  }
  return current
}

exports.agent = agent
/**
 * Throws a stack overflow before an operation begins without enough stack. Each operation calls it before it changes
 * anything, unless it makes all its changes by one built-in or native call and calls nothing of the package afterwards:
 * without enough stack, any call may throw.
 */
exports.assertStack = () => agent().assertStack()
/** Lets a promise keep the event loop alive, or not. False if it is no pending wait of this thread. */
exports.setRefed = (promise, refed) => current !== undefined && current.setRefed(promise, refed)
