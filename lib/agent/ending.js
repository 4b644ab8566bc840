'use strict'

/** The end of this thread: an event loop that runs dry while promises are pending; and how the thread ends. */

const { createArray, nextTick } = require('../util/intrinsics')
const { HIDES_EXCEPTIONS } = require('../util/quirks')
const { setImmediate } = require('../util/timers')
const { STALL } = require('../util/variables')
const { binding, operations, stallAfter, words } = require('./registers-view')
const { ANSWER } = require('./registers')
const { someWaiter } = require('./slots')

const PENDING = 'ATOMICS_WAITASYNC_PENDING'
/** How many locks get a warning of their own. */
const MOST_WARNINGS = 10

const warn = (text, detail) => process.emitWarning(text, { code: PENDING, ...detail })
/** Says how to learn more, of the first warning. */
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
  if (findsWork() || !someWaiter(() => true)) return
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
  const slots = createArray(0)
  someWaiter((waiter) => {
    const note = waiter.refed ? waiter.pendingNote : undefined
    if (note === undefined) return false
    if (notes.length < MOST_WARNINGS) slots[notes.length] = waiter.slot
    notes[notes.length] = note
    return false
  })
  // Also of waits that have just begun.
  const reports = stallAfter === 0 ? createArray(0) : binding.reportAll(slots)
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

module.exports = { reportEnd, watchLoop }
