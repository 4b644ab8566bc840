'use strict'

/**
 * The agent of this thread: the JavaScript half of its wait queue. It also keeps the event loop alive while waits are
 * pending. `find-agent.js` requires this file when a thread first uses the queue.
 *
 * Invariant of waits that block: an answer is read with no function call after the operation. Near the end of the stack
 * any call may throw, and then a thread that was woken would not know it.
 */

const { bare, createArray, createMap, nextTick } = require('../util/intrinsics')
const { HIDES_EXCEPTIONS } = require('../util/quirks')
const { assertKilobytes, stackKilobytes } = require('../util/stack')
const { setImmediate } = require('../util/timers')
const { DUMP, STALL } = require('../util/variables')
const { isMainThread } = require('../util/worker-threads')
const native = require('./registers-view')
const {
  ADDRESS, AMOUNT, ANSWER, COUNT, DEADLOCK, ENTRY, GIVEN, NO_TIMER, RESULTS, TIMEOUT, operationError
} = require('./registers')
const slots = require('./slots')

const { binding, counters, floats, operations, stallAfter, words, writeRequest, writeWait } = native

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

/** Blocks until notified or timed out. `operation` takes the operands of `wait`. */
function wait (address, wide, value, timeout, operation = operations.wait) {
  probeStack()
  writeWait(address, timeout, wide, value)
  operation()
  const answer = words[ANSWER]
  if (floats[GIVEN] !== 0) goOn()
  if (answer >= NO_TIMER) throw operationError(answer)
  return RESULTS[answer]
}

/** Blocks on an Int32Array for a class of locks/. `waitKind` is the number of the class. */
function waitFor (address, value, timeout, waitKind) {
  words[AMOUNT] = waitKind
  return wait(address, false, value, timeout, operations.waitFor)
}

/**
 * Confirms the provisional grant: this thread resumes with it. If the thread is being terminated, it ends here, and
 * the grant goes to another. The engine checks for termination where a function is called or, if the call is inlined,
 * where a loop repeats: so this loop repeats once.
 */
function goOn () {
  for (let isAlive = false; floats[GIVEN] !== 0; isAlive = true) {
    pause()
    if (isAlive) floats[GIVEN] = 0
  }
}

/**
 * Blocks until a word grants a request (see holding/word.js). The robust list keeps the word meanwhile: see `expect`.
 * @returns {number} the answer. From ACQUIRED to ACQUIRED_FROM_DEAD: this thread has the hold, as the last entry of
 *   its robust list. From DEADLOCK on: it would wait for ever. Otherwise it has timed out
 */
function claim (word, kind, amount, timeout) {
  const { lineName } = word
  probeStack()
  writeRequest(word, kind, amount, timeout)
  if (lineName === undefined) {
    operations.claim()
  } else {
    operations.claimName(lineName)
    word.address = floats[ADDRESS]
  }
  const answer = words[ANSWER]
  if (floats[GIVEN] !== 0) goOn()
  if (answer >= NO_TIMER && answer < DEADLOCK) throw operationError(answer)
  return answer
}

/**
 * Enqueues this thread, releases an entry of its robust list, and blocks. It calls `onReleased` before it blocks. The
 * notification of a thread that takes the released lock cannot come too early. All of it is one operation: a waiter
 * whose thread was interrupted in between would take notifications from the others.
 * Afterwards the notification is in the register RELAY: it goes to another waiter if this thread ends, or calls
 * `forwardNotification`.
 */
function waitGivingBack (address, timeout, index, onReleased) {
  probeStack()
  floats[ADDRESS] = address
  floats[TIMEOUT] = timeout
  words[ENTRY] = index
  operations.waitGivingBack(onReleased)
  const answer = words[ANSWER]
  if (answer >= NO_TIMER) throw operationError(answer)
  return RESULTS[answer]
}

/** Does nothing: the engine can interrupt a thread where a function is called. */
function pause () {}

/** Throws a stack overflow, if there is one, before the wait begins. */
function probeStack () {
  pause()
}

/**
 * The door: by it leaves all that a program can see of an operation on locks.
 *
 * A program's code may run wherever something is published: in a subscriber of a channel, but also within `nextTick`,
 * by a hook of async_hooks. That code may use the same locks. So an operation only notes what is to be published, while
 * it changes words, lists and registers. Each public call opens the door after its last change, and reads no register
 * after that.
 *
 * A call that an exception or a time limit of `vm` interrupts leaves its notes to the next call of the thread.
 */
class Door {
  constructor () {
    // Whether there is anything to publish: so a call that has nothing pays for one comparison.
    this.isDue = false
    this.notes = createArray(0)
    this.first = 0
  }

  /** Notes a function that publishes something to the program. None of the program's code runs. */
  note (publish) {
    this.notes[this.notes.length] = publish
    this.isDue = true
  }

  /** Publishes all that was noted. Never throws. */
  open () {
    if (this.isDue) this.publishAll()
  }

  /** Publishes in order. A call that the program's code makes meanwhile publishes those that are left. */
  publishAll () {
    while (this.first < this.notes.length) {
      const publish = this.notes[this.first]
      this.notes[this.first++] = undefined
      try {
        publish()
      } catch (_) {
        // No stack is left, or the program has replaced what the function calls. The locks must work all the same.
      }
    }
    this.isDue = false
    this.notes = createArray(0)
    this.first = 0
  }
}
bare(Door)

// ——— The end: an event loop that runs dry while promises are pending; and how the thread ends ———

const PENDING = 'ATOMICS_WAITASYNC_PENDING'
/** How many locks get a warning of their own. */
const MOST_WARNINGS = 10

const warn = (text, detail) => process.emitWarning(text, { code: PENDING, ...detail })
const HINT = { detail: STALL + '=<milliseconds> in the environment adds the lines that wait and that hold.' }

/** Settles promises before this thread ends, and warns of the rest. */
function watchLoop () {
  try {
    process.on('beforeExit', beforeExit)
  } catch (error) {
    // A program has frozen `process`, or replaced the method.
    warn('process takes no listener: what is pending when the event loop runs dry is not reported, and a wait that ' +
      'is unref\'d may not settle. ' + error.message)
  }
}

/**
 * Looks once more before the thread ends. An unref'd wait does not hold the event loop. But if it has been notified by
 * now, it is settled before this thread ends; and a claim is granted if its word is free.
 */
function beforeExit () {
  if (findsWork() || !slots.someWaiter(() => true)) return
  // Later listeners run first, and the code that they await: it may settle a pending promise, or hold the loop.
  nextTick(async () => {
    await undefined
    nextTick(warnPending)
  })
}

function findsWork () {
  operations.runsDry()
  return words[ANSWER] === 1
}

/**
 * Warns of pending promises that nothing is left to settle. Otherwise the program would end without a message.
 * Each word is warned of once.
 */
function warnPending () {
  if (findsWork()) return
  const notes = createArray(0)
  const pendingSlots = createArray(0)
  slots.someWaiter((waiter) => {
    const note = waiter.refed ? waiter.pendingNote : undefined
    if (note === undefined) return false
    if (notes.length < MOST_WARNINGS) pendingSlots[notes.length] = waiter.slot
    notes[notes.length] = note
    return false
  })
  // Also of waits that have just begun.
  const reports = stallAfter === 0 ? createArray(0) : binding.reportAll(pendingSlots)
  const end = ' pending, and the event loop of this thread has nothing left to do that could settle '
  for (let n = 0; n < notes.length && n < MOST_WARNINGS; n++) {
    const { waitsFor, isHolder } = notes[n]
    const more = (isHolder ? ' This thread holds it itself.' : '') + (reports[n] ? '\n' + reports[n] : '')
    warn('A promise that waits for ' + waitsFor + ' is' + end + 'it.' + more, n === 0 && stallAfter === 0 && HINT)
  }
  const more = notes.length - MOST_WARNINGS
  if (more > 0) warn(more + ' more promises that wait for other locks are' + end + 'them.')
}

/** `MANNERS` in core/src/observe/rows.rs has the same numbers. */
const MANNERS = { UNKNOWN: 0, TERMINATE: 1, END: 2, EXIT: 3, EXCEPTION: 4 }

/**
 * Tells native code how this thread, a worker, ends: reports of waits name it.
 *
 * Node emits no 'exit' in a thread that is terminated. So that is how it ends unless a listener has been called before.
 */
function reportEnd () {
  // What happened in this turn of the event loop.
  let last = MANNERS.EXIT
  const notes = (manner) => () => {
    last = manner
    try {
      setImmediate(() => { last = MANNERS.EXIT }).unref()
    } catch (_) {
      // A test has put a fake one in place.
    }
  }
  const exit = (code) => {
    binding.endsBy(last === MANNERS.EXIT && code !== 0 && HIDES_EXCEPTIONS ? MANNERS.UNKNOWN : last)
  }
  try {
    process.on('beforeExit', notes(MANNERS.END))
    if (!HIDES_EXCEPTIONS) process.on('uncaughtExceptionMonitor', notes(MANNERS.EXCEPTION))
    process.on('exit', exit)
    process.on('removeListener', (name, listener) => { if (listener === exit) binding.endsBy(MANNERS.UNKNOWN) })
    binding.endsBy(MANNERS.TERMINATE)
  } catch (_) {
    // A program has frozen `process`.
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
if (!isMainThread && (stallAfter !== 0 || native.dumpSignal !== undefined)) reportEnd()
assertStack()

module.exports = {
  native, assertStack,
  door: new Door(),
  addressOf: binding.addressOf,
  notify, notifyWaiting, mayBeWaiting, waiterCount, holderOf, setRefed, rememberSteps, forgetSteps,
  claim, wait, waitFor, waitGivingBack,
  ...slots,
  /** The robust list, once this thread has made its first lock: see holding/robust-list.js. */
  robustList: undefined
}
