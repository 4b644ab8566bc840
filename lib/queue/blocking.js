'use strict'

/** Blocks for a step of a queue; and describes calls, also those that await. */

const { agent } = require('../agent/find-agent')
const { NOTIFIED, WAIT_KINDS, deadlock, deadlockOfPutters, timeoutError } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { blockFor, countdown } = require('../waiting/notice')
const { NOTIFICATION, requestOf } = require('../holding/request')
const theList = require('../holding/the-list')
const { BUSY, ENDED, IDLE, NOTHING, PUT, PUTTING, TAKE, USE } = require('./memory')
const { idled, owingQuietly } = require('./steps')

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
    if (isMarked) refuseCycle(memory, caller)
    wait.began = observer.goesOn(wait.began)
    // Threads wait at the second word of the events.
    blockFor(side.second.address, count, left(), mode + WAIT_KINDS * (side.at + 1), wait.place, wait.sample)
    if (isMarked) list.resumePutter(begun.putter, begun.entry, PUTTING)
  }
}

/** Throws if all users of the queue would block in `put`; otherwise notes that this one does. */
function refuseCycle (memory, caller) {
  const { native: { binding } } = agent()
  const list = theList()
  const index = list.indexOf(list.queues.begun.putter, list.queues.begun.entry)
  const threads = binding.blockPutter(index, memory.first.address, memory.capacity)
  if (threads !== null) throw deadlockOfPutters(caller, memory.first, threads)
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

module.exports = { blocking, calling, isInVain, lateError, publishWait }
