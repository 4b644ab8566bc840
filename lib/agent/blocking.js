'use strict'

/**
 * Waits that block this thread.
 *
 * Invariant: an answer is read with no function call after the operation. Near the end of the stack any call may throw,
 * and then a thread that was woken would not know it.
 */

const native = require('./registers-view')
const {
  ADDRESS, AMOUNT, ANSWER, DEADLOCK, ENTRY, GIVEN, NO_TIMER, RESULTS, TIMEOUT, operationError
} = require('./registers')

const { floats, operations, words, writeRequest, writeWait } = native

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
 * Blocks until a word grants a request (see holding/word.js). The robust list keeps the word
 * meanwhile: see `expect` there.
 *
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
 * Enqueues this thread, releases an entry of its robust list, and blocks. It calls `onReleased` before it
 * blocks. The notification of a thread that takes the released lock cannot come too early. All of it is one
 * operation: a waiter whose thread was interrupted in between would take notifications from the others.
 *
 * Afterwards the notification is in the register RELAY: it goes to another waiter if this thread ends, or
 * calls `forwardNotification`.
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

module.exports = { claim, wait, waitFor, waitGivingBack }
