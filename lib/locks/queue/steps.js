'use strict'

/** The steps of a queue with their debts, and the blocking forms. memory.js says what a thread owes during a step. */

const { agent } = require('../../agent/agent')
const { add } = require('../../util/intrinsics')
const { deadlock } = require('../../waiting/errors')
const { PURPOSES } = require('../../waiting/kinds')
const { blockFor, countdown } = require('../../waiting/notice')
const { DEBT } = require('../hold/request')
const { theList } = require('../hold/hold')
const { FILLED, EMPTIED } = require('./layout')
const { BUSY, ENDED, LATE, NOTHING, PUT, TAKE, USE } = require('./memory')
const ToldWait = require('./told-wait')

/** The step that this thread is in: its queue, its debts' serial numbers. */
const begun = { __proto__: null, memory: undefined, filled: 0, emptied: 0 }

/** Carries out a step; until its end this thread owes both events. */
function owing (memory, step, argument, blocks) {
  agent().assertStack()
  return owingOn(memory, step, argument, blocks)
}

/**
 * Carries out a step as `owing`, without asking for stack. It is for the end of a use, a call that has asked before,
 * and has changed something since.
 */
function owingOn (memory, step, argument, blocks) {
  if (begun.memory !== undefined) backOut()
  const list = theList()
  // Where the entries are, unless others move.
  const entry = list.length
  begun.memory = memory
  const filled = begun.filled = list.enter(memory.filled, DEBT)
  const emptied = begun.emptied = list.enter(memory.emptied, DEBT)
  try {
    return step(memory, argument, blocks)
  } finally {
    list.strike(emptied, entry + 1)
    list.strike(filled, entry)
    memory.lease = undefined
    begun.memory = undefined
    // Subscribers may use the queue.
    list.holds.tell()
  }
}

/**
 * Undoes this thread's last step, which a time limit of `vm` interrupted. It does what the
 * thread's death would have done.
 */
function backOut () {
  const { memory, filled, emptied } = begun
  const list = theList()
  if (memory.lease !== undefined) memory.strike(memory.lease)
  if (memory.takeLock.isHeld) {
    memory.repair()
    memory.takeLock.release()
  }
  if (memory.putLock.isHeld) memory.putLock.release()
  for (let n = 0; n < 2; n++) {
    const events = n === 0 ? memory.filled : memory.emptied
    add(events.word.array, 0, 1)
    events.raise(Infinity)
  }
  list.strike(emptied, 0)
  list.strike(filled, 0)
  memory.lease = undefined
  begun.memory = undefined
}

/** Puts a message: true, NOTHING, BUSY or ENDED. */
function put (memory, written, blocks) {
  const { emptied, filled, putLock } = memory
  if (blocks) putLock.lock()
  else if (!putLock.tryLock()) return BUSY
  let found
  try {
    found = memory.putNow(written)
  } finally {
    putLock.unlock()
  }
  if (found === NOTHING) {
    return memory.takeLock.mayBeAbandoned && recover(memory, blocks) ? put(memory, written, blocks) : NOTHING
  }
  if (found === true) {
    filled.raise(1)
    if (memory.hasMore) emptied.wake(1)
  }
  return found
}

/**
 * Carries out a step with the take lock; returns its answer, or BUSY. Before, it frees the slots that a dead
 * holder of the lock has lost.
 */
function withTakeLock (memory, step, argument, blocks) {
  const { takeLock } = memory
  if (blocks) takeLock.lock()
  else if (!takeLock.tryLock()) return BUSY
  const { ownerDied } = takeLock.token
  let found
  try {
    if (ownerDied) memory.repair()
    found = step(memory, argument)
  } finally {
    takeLock.unlock()
  }
  if (ownerDied) freed(memory, Infinity)
  return found
}

/** Frees slots that a dead taker has lost. False if there were none. */
function recover (memory, blocks) {
  return withTakeLock(memory, wasAbandoned, undefined, blocks) === true
}

const wasAbandoned = ({ takeLock }) => takeLock.token.ownerDied

/** Raises the events after slots have been given back. */
function freed (memory, count) {
  memory.emptied.raise(count)
  // That may have been the last one of a closed queue.
  if (memory.isEnded) memory.filled.raise(Infinity)
}

/** Takes a message, to use it or for good: a Lease, NOTHING, BUSY or ENDED. */
function take (memory, toUse, blocks) {
  const { filled } = memory
  const found = withTakeLock(memory, takeNow, toUse, blocks)
  if (found === NOTHING || found === BUSY) return found
  if (found === ENDED) filled.raise(Infinity)
  else {
    if (!toUse) freed(memory, 1)
    if (memory.hasMore) filled.wake(1)
  }
  return found
}

const takeNow = (memory, toUse) => memory.takeNow(toUse)

/** Ends the use of a message: true, or BUSY. */
function finish (memory, lease, blocks) {
  const found = withTakeLock(memory, finishNow, lease, blocks)
  if (found !== BUSY) freed(memory, 1)
  return found
}

function finishNow (memory, lease) {
  memory.finish(lease)
  return true
}

/** Puts back a message that is in use: it is delivered again. */
function putBack (memory, lease) {
  memory.lease = lease
  memory.strike(lease)
  add(memory.first.array, 0, 1)
  memory.filled.raise(1)
}

/** Closes the queue. */
function close (memory) {
  memory.close()
  memory.filled.raise(Infinity)
  memory.emptied.raise(Infinity)
}

// ——— Forms that block ———

/** Puts a message: true, ENDED or LATE. If it waits, `wait` gets a ToldWait, which its caller ends. */
function putBlocking (memory, wait) {
  const { written, timeout } = wait
  const left = countdown(timeout)
  const { emptied } = memory
  let isLate = timeout === 0
  let count
  for (;;) {
    const found = put(memory, written, true)
    if (found !== NOTHING) return found
    if (isLate) return LATE
    const before = count
    count = emptied.count
    // It waits for what comes after this look.
    if (count !== before) continue
    if (memory.taken === memory.capacity && memory.leases === memory.capacity) {
      throw deadlock('put', memory.first, { kind: 'Queue', mode: 'put' }, 'has all messages in use of')
    }
    isLate = block(memory, emptied, count, left(), PUT + PURPOSES * EMPTIED, wait)
  }
}

/** Takes a message: a Lease, ENDED or LATE. If it waits, `wait` gets a ToldWait, as of `putBlocking`. */
function takeBlocking (memory, wait) {
  const { toUse, timeout, caller } = wait
  const left = countdown(timeout)
  const { filled } = memory
  let isLate = timeout === 0
  let count
  for (;;) {
    const found = take(memory, toUse, true)
    if (found !== NOTHING) return found
    if (isLate) return LATE
    const before = count
    count = filled.count
    if (count !== before) continue
    if (memory.isClosed && memory.ready === 0 && memory.taken > 0 && memory.leases === memory.taken) {
      throw deadlock(caller, memory.first, { kind: 'Queue', mode: 'take' }, 'has all messages in use of')
    }
    isLate = block(memory, filled, count, left(), (toUse ? USE : TAKE) + PURPOSES * FILLED, wait)
  }
}

/** Blocks until the events have gone on from `count`. True if the time is over. */
function block (memory, { second }, count, timeout, purpose, wait) {
  if (wait.told === undefined) wait.told = new ToldWait(memory.first, purpose % PURPOSES)
  return blockFor(second.address, count, timeout, purpose, wait.told.onSlice) === 'timed-out'
}

/** Returns the outcome of a wait, as diagnostics name it. */
const outcomeOf = (found) => found === LATE ? 'timed-out' : found === ENDED ? 'ended' : 'acquired'

/** Carries out a blocking step, and publishes its wait, if any. */
function blocking (memory, step, wait) {
  const found = owing(memory, step, wait)
  if (wait.told !== undefined) wait.told.ends(outcomeOf(found))
  return found
}

module.exports = {
  blocking, close, finish, outcomeOf, owing, owingOn, put, putBack, putBlocking, recover, take, takeBlocking
}
