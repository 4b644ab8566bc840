'use strict'

/**
 * Carries out steps of a queue, which owe notifications. memory.js says to whom.
 *
 * # The state of a thread's step
 * `begun` is the record of the step in which this thread is; all copies of the package share it. A time limit of `vm`
 * may interrupt a step anywhere; then none of its code runs any more, also no `finally`.
 *
 * | state | what runs | a step that begins meanwhile |
 * |---|---|---|
 * | IDLE | no step | makes it INSIDE |
 * | INSIDE | the package's code, native code, sleep | finds this one interrupted, and undoes it |
 *
 * `owingQuietly` makes it INSIDE and IDLE again, and `undo` IDLE. No program's code runs within a step.
 */

const { agent } = require('../agent/find-agent')
const { add } = require('../util/intrinsics')
const { OWED, requestOf } = require('../holding/request')
const theList = require('../holding/the-list')
const { PUT_RETURNS } = require('./layout')

const IDLE = 'idle'
const INSIDE = 'inside'

/** A notification that is owed to all who wait for a queue. */
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
  if (begun.state !== IDLE) undo(list)
  // Where the entry is, unless others move.
  const entry = list.length
  begun.memory = memory
  begun.state = INSIDE
  const owed = begun.owed = list.addEntry(memory.filled, OWED_TO_ALL)
  try {
    return step(memory, argument, left)
  } finally {
    list.removeEntry(owed, entry)
    begun.state = IDLE
    begun.memory = begun.lease = undefined
  }
}

/** Undoes this thread's last step, which was interrupted. So the thread's death would have done. */
function undo (list) {
  const { begun } = list.queues
  const { memory, owed, putter } = begun
  if (putter !== 0) list.removePutter(putter, 0, memory.putting)
  for (let { lease } = begun; lease !== undefined; lease = lease.next) memory.removeLease(lease)
  if (memory.takeLock.isHeld) {
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
  begun.state = IDLE
  begun.memory = begun.lease = undefined
}

module.exports = { owing, owingOn, owingQuietly }
