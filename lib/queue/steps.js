'use strict'

/**
 * The steps of a queue: whom they notify, how they are carried out, and how a thread blocks for them. memory.js says
 * what they do. Here are calls described, too, also those that await.
 *
 * `begun` is the record of the step in which this thread is; all copies of the package share it. Only within a step it
 * has a `memory`. No program's code runs there. A time limit of `vm` may interrupt a step anywhere; then none of its
 * code runs any more, also no `finally`. So a step that finds another one begun undoes that.
 */

const { agent } = require('../agent/find-agent')
const { add, store } = require('../util/intrinsics')
const { NOTIFIED, WAIT_KINDS, deadlock, deadlockOfPutters, timeoutError } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { blockFor, countdown } = require('../waiting/notice')
const { NOTIFICATION, OWED, requestOf } = require('../holding/request')
const theList = require('../holding/the-list')
const { AWAITED, PUT_RETURNS } = require('./layout')
const { BUSY, ENDED, IDLE, NOTHING, PUT, PUTTING, TAKE, USE } = require('./memory')

const OWED_TO_ALL = requestOf(OWED, PUT_RETURNS)

/**
 * Carries out a step; until its end this thread owes all events. Then it opens the door.
 * @param {() => number} [left] how long it may block, in milliseconds; without it, it does not
 */
function owing (memory, step, argument, left) {
  agent().assertStack()
  return owingOn(memory, step, argument, left)
}

/**
 * Carries out a step as `owing`, without asking for stack. It is for the end of a use, a call that has asked before,
 * and has changed something since.
 */
function owingOn (memory, step, argument, left) {
  try {
    return owingQuietly(memory, step, argument, left)
  } finally {
    agent().door.open()
  }
}

/** Carries out a step as `owingOn`. The caller opens the door. */
function owingQuietly (memory, step, argument, left) {
  const list = theList()
  const { begun } = list.queues
  if (begun.memory !== undefined) undo(list)
  // Where the entry is, unless others move.
  const entry = list.length
  begun.memory = memory
  const owed = begun.owed = list.addEntry(memory.filled, OWED_TO_ALL)
  try {
    return step(memory, argument, left)
  } finally {
    list.removeEntry(owed, entry)
    begun.memory = begun.lease = undefined
  }
}

/** Undoes this thread's last step, which was interrupted. So the thread's death would have done. */
function undo (list) {
  const { begun } = list.queues
  const { memory, owed, putter } = begun
  if (putter !== 0) list.removePutter(putter, 0, memory.putting)
  for (let { lease } = begun; lease !== undefined; lease = lease.next) memory.removeLease(lease)
  // Before its token is known, only the list knows that this thread has it.
  if (memory.takeLock.word.find() >= 0) {
    memory.repair()
    memory.takeLock.unlock()
  }
  memory.putLock.unlock()
  for (let n = 0; n < 3; n++) {
    const events = n === 0 ? memory.filled : n === 1 ? memory.emptied : memory.idled
    add(events.word.array, 0, 1)
    events.raise(Infinity)
  }
  list.removeEntry(owed, 0)
  begun.putter = begun.owed = 0
  begun.memory = begun.lease = undefined
}

// What `withLock` does.
const putNow = (memory, written) => memory.putNow(written)
const takeNow = (memory, place) => memory.takeNow(place)
const takeManyNow = (memory, max) => memory.takeManyNow(max)
const clearNow = (memory) => memory.clearNow()
const wasAbandoned = ({ takeLock }) => takeLock.token.ownerDied

/** Puts a message: true, NOTHING, BUSY or ENDED. */
function put (memory, written, left) {
  const { emptied, filled } = memory
  const found = withLock(memory, memory.putLock, putNow, written, left)
  if (found === NOTHING) {
    return memory.takeLock.mayBeAbandoned && recover(memory, left) ? put(memory, written, left) : NOTHING
  }
  // Who closed it may have died before it notified the others.
  if (found === ENDED) emptied.raise(Infinity)
  if (found === true) {
    filled.raise(1)
    if (memory.hasMore) emptied.wake(1)
  }
  return found
}

/**
 * Carries out a step with a lock; returns its answer, or BUSY. Before, it frees the slots that a dead
 * holder of the take lock has lost.
 */
function withLock (memory, lock, step, argument, left) {
  if (left === undefined ? !lock.tryLock() : !lock.lock(left)) return BUSY
  const isToRepair = lock.token.ownerDied && lock === memory.takeLock
  let found
  try {
    if (isToRepair) memory.repair()
    found = step(memory, argument)
  } finally {
    lock.unlock()
  }
  if (isToRepair) freed(memory, Infinity)
  return found
}

/** Frees slots that a dead taker has lost. False if there were none. */
function recover (memory, left) {
  return withLock(memory, memory.takeLock, wasAbandoned, undefined, left) === true
}

/** Raises the events after slots have been given back. */
function freed (memory, count) {
  memory.emptied.raise(count)
  // That may have been the last one of a closed queue.
  if (memory.isEnded) memory.filled.raise(Infinity)
  idled(memory)
}

/** Tells those who wait until the queue is idle, if it is. */
function idled (memory) {
  if (memory.tellsIdle()) memory.idled.raise(Infinity)
}

/**
 * Looks whether the queue is idle: true, NOTHING or BUSY. Before, it frees slots that are lost, or to be discarded. If
 * another thread frees them just now, that one notifies.
 */
function idle (memory, _, left) {
  if (memory.takeLock.mayBeAbandoned) recover(memory, left)
  if (memory.discards && !memory.isEnded && clear(memory, undefined, left) === BUSY) return BUSY
  store(memory.words, AWAITED, 1)
  if (!memory.isIdle) return NOTHING
  memory.idled.wake(Infinity)
  return true
}

/** Takes a message, to use it (at `place`) or for good: a Lease, NOTHING, BUSY or ENDED. */
function take (memory, place, left) {
  return attempt(memory, takeNow, place, left, place === undefined)
}

/** Attempts to take, and raises the events. Returns the answer. `isFree`: the slot has been given back. */
function attempt (memory, step, argument, left, isFree) {
  const { filled, takeLock } = memory
  const found = withLock(memory, takeLock, step, argument, left)
  if (isInVain(found)) return found
  if (found === ENDED) filled.raise(Infinity)
  else {
    if (isFree) freed(memory, 1)
    if (memory.hasMore) filled.wake(1)
  }
  return found
}

/** Takes up to `max` messages, to read them: an array of Leases without their bytes, NOTHING, BUSY or ENDED. */
function takeMany (memory, max, left) {
  return attempt(memory, takeManyNow, max, left, false)
}

/** Removes the first messages of a batch, and puts back the others: true, or BUSY. */
function endBatch (memory, batch, left) {
  const { leases, count } = batch
  const { length } = leases
  theList().queues.begun.lease = leases[length - 1]
  if (count > 0) {
    if (withLock(memory, memory.takeLock, endBatchNow, batch, left) === BUSY) return BUSY
    freed(memory, count)
  }
  for (let n = length - 1; n >= count; n--) memory.removeLease(leases[n])
  if (count < length) haveComeBack(memory, length - count)
  return true
}

function endBatchNow (memory, { leases, count }) {
  // The last first: that is where its entry is in the robust list.
  for (let n = count - 1; n >= 0; n--) memory.remove(leases[n])
  return true
}

/** Removes the messages that wait: how many, or BUSY. */
function clear (memory, _, left) {
  const found = withLock(memory, memory.takeLock, clearNow, undefined, left)
  if (found !== BUSY && found > 0) freed(memory, found)
  return found
}

/** Ends the use of a message, unless it has been put back: true, or BUSY. */
function endUse (memory, lease, left) {
  if (lease.serial === 0) return true
  const found = withLock(memory, memory.takeLock, endUseNow, lease, left)
  if (found !== BUSY) freed(memory, 1)
  return found
}

function endUseNow (memory, lease) {
  theList().queues.begun.lease = lease
  memory.remove(lease)
  return true
}

/** Puts back a message, if it is in use: it is delivered again. */
function putBack (memory, lease) {
  if (lease.serial === 0) return
  theList().queues.begun.lease = lease
  memory.endInOrder(lease)
  memory.removeLease(lease)
  haveComeBack(memory, 1)
}

/** Puts back a message that is in use, behind all that wait: true, or BUSY. */
function defer (memory, lease, left) {
  const found = withLock(memory, memory.takeLock, deferNow, lease, left)
  if (found === BUSY) return BUSY
  memory.filled.raise(1)
  discarded(memory)
  return true
}

function deferNow (memory, lease) {
  theList().queues.begun.lease = lease
  memory.endInOrder(lease)
  memory.deferNow(lease.slot)
  memory.removeLease(lease)
  return true
}

/** Raises the events after messages have come back. */
function haveComeBack (memory, count) {
  add(memory.first.array, 0, 1)
  memory.filled.raise(count)
  discarded(memory)
}

/** Removes what waits in a queue that discards. If another thread is inside a step, those who wait do it. */
function discarded (memory) {
  if (!memory.discards) return
  clear(memory)
  memory.idled.raise(Infinity)
}

/** Closes a queue. `discards`: also removes what waits; if another thread is inside a step, the next taker does. */
function close (memory, discards) {
  memory.close(discards)
  memory.filled.raise(Infinity)
  memory.emptied.raise(Infinity)
  discarded(memory)
}

// ——— Blocking ———

/** What a thread does that waits in vain, by mode: see `isStuck`. */
const STUCK = []
STUCK[PUT] = STUCK[TAKE] = STUCK[USE] = 'has all messages in use of'
STUCK[IDLE] = 'has a message in use of'

/**
 * Blocks until a step succeeds or the queue has ended. Returns its answer. The caller has asked for stack. Throws a
 * TimeoutError. `wait`: see `calling`.
 */
function blocking (memory, wait) {
  const { mode, step, argument, timeout } = wait
  const left = countdown(timeout)
  let found
  try {
    found = owingQuietly(memory, step, argument, left)
    if (found === NOTHING && timeout !== 0) {
      // The value is written at the call.
      if (mode === PUT) argument.keep()
      wait.place = observer.callHere()
      wait.sample = observer.sample()
      const since = observer.waits()
      found = owingQuietly(memory, mode === PUT ? waitToPut : waitAndStep, wait, left)
      publishWait({ since, memory, mode }, isInVain(found) ? 'timed-out' : found === ENDED ? 'ended' : 'acquired')
    }
  } finally {
    agent().door.open()
  }
  if (isInVain(found)) throw lateError(memory, wait)
  return found
}

/** Waits as `waitAndStep`. Until its end the queue counts this thread among those that wait to put. */
function waitToPut (memory, wait, left) {
  const list = theList()
  const { begun } = list.queues
  begun.entry = list.length
  begun.putter = list.addEntry(memory.putting, PUTTING)
  try {
    return waitAndStep(memory, wait, left)
  } finally {
    list.removePutter(begun.putter, begun.entry, memory.putting)
    begun.putter = 0
    idled(memory)
  }
}

/** Blocks for a step. Returns its answer; NOTHING or BUSY if the time is over. */
function waitAndStep (memory, wait, left) {
  const { mode, step, argument, timeout, caller } = wait
  const side = memory.sideOf(mode)
  const list = theList()
  const { begun } = list.queues
  for (;;) {
    // It waits for messages that come after the look that follows.
    const { count } = side
    const found = step(memory, argument, left)
    // It may have been notified.
    if (found === BUSY) side.wake(1)
    if (found !== NOTHING || left() === 0) return found
    if (memory.isStuck(mode)) throw deadlock(caller, memory.first, NOTIFIED[mode], STUCK[mode])
    const isMarked = mode === PUT && timeout === Infinity && memory.leases > 0
    if (isMarked) {
      // Whether all users of the queue would block in `put`; otherwise it notes that this one does.
      const index = list.indexOf(begun.putter, begun.entry)
      const threads = agent().native.binding.blockPutter(index, memory.first.address, memory.capacity)
      if (threads !== null) throw deadlockOfPutters(caller, memory.first, threads)
    }
    wait.began = observer.goesOn(wait.began)
    // Threads wait at the second word of the events.
    blockFor(side.second.address, count, left(), mode + WAIT_KINDS * (side.at + 1), wait.place, wait.sample)
    if (isMarked) list.resumePutter(begun.putter, begun.entry, PUTTING)
  }
}

const isInVain = (found) => found === NOTHING || found === BUSY

/**
 * Notes the end of a wait for diagnostics. The caller opens the door. `since`: of the observer's `waits`.
 * @param {'acquired' | 'ended' | 'timed-out' | 'aborted'} outcome
 */
function publishWait ({ since, memory: { first: word }, mode }, outcome) {
  if (since !== undefined) observer.waited(since, { word, request: requestOf(NOTIFICATION, mode) }, outcome)
}

const lateError = ({ first }, { mode, timeout }) => timeoutError(first, NOTIFIED[mode], timeout)

/**
 * Describes a call: its step, how long it waits for that, and, while it blocks, where and since when.
 * @param {object} limits the options of the call
 */
const calling = (mode, step, argument, limits, caller) => {
  const { timeout, signal } = limits
  return { mode, step, argument, limits, timeout, signal, caller, place: 0, sample: undefined, began: undefined }
}

module.exports = {
  blocking, calling, clear, close, defer, endBatch, endUse, idle, idled, isInVain, lateError, owing, owingOn,
  owingQuietly, publishWait, put, putBack, recover, take, takeMany
}
