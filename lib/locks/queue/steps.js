'use strict'

/** The steps of a queue, each with what this thread owes meanwhile (see memory.js), and the forms that block for them. */

const { agent } = require('../../agent/agent')
const { add } = require('../../util/intrinsics')
const { deadlock } = require('../../waiting/errors')
const { PURPOSES } = require('../../waiting/kinds')
const { countdown } = require('../../waiting/notice')
const { DEBT } = require('../held/request')
const { theList } = require('../held/token')
const { FILLED, EMPTIED } = require('./layout')
const { BUSY, ENDED, NOTHING } = require('./memory')

// Purposes of waits: see waiting/kinds.js.
const PUT = 4
const TAKE = 5
const USE = 6

/** What a blocking form answers when its time is over. */
const LATE = Symbol('late')

/** Carries out a step; until its end this thread owes both events. */
function owing (memory, step, argument, blocks) {
  agent().requireStack()
  const list = theList()
  // Where the entries are, unless others move.
  const entry = list.length
  const filled = list.enter(memory.filled, DEBT)
  const emptied = list.enter(memory.emptied, DEBT)
  try {
    return step(memory, argument, blocks)
  } finally {
    list.strike(emptied, entry + 1)
    list.strike(filled, entry)
    list.holds.tell()
  }
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
  if (found === NOTHING) return memory.takeLock.mayBeAbandoned && recover(memory, blocks) ? put(memory, written, blocks) : NOTHING
  if (found === true) {
    filled.raise(1)
    if (memory.hasRoom) emptied.wake(1)
  }
  return found
}

/** Carries out a step with the take lock, after it has freed what a dead holder of that has left lost. What the step answers, or BUSY. */
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

/** A taker may have died with a slot that nobody can use: frees it. False if there was none. */
function recover (memory, blocks) {
  return withTakeLock(memory, wasAbandoned, undefined, blocks) === true
}

const wasAbandoned = ({ takeLock }) => takeLock.token.ownerDied

/** Slots have been given back. */
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
    if (memory.hasMessages) filled.wake(1)
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

/** Puts a message that is in use back: it is delivered again. */
function putBack (memory, lease) {
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

/** Puts a message: true, ENDED or LATE. */
function putBlocking (memory, { written, timeout }) {
  const left = countdown(timeout)
  const { emptied } = memory
  let isLate = false
  for (;;) {
    const { count } = emptied
    const found = put(memory, written, true)
    if (found !== NOTHING) return found
    if (isLate) return LATE
    if (memory.leases === memory.capacity) throw deadlock('put', memory.first, { kind: 'Queue', mode: 'put' }, 'has all messages in use of')
    isLate = wait(emptied.second, count, left(), PUT + PURPOSES * EMPTIED)
  }
}

/** Takes a message: a Lease, ENDED or LATE. */
function takeBlocking (memory, { toUse, timeout, caller }) {
  const left = countdown(timeout)
  const { filled } = memory
  let isLate = false
  for (;;) {
    const { count } = filled
    const found = take(memory, toUse, true)
    if (found !== NOTHING) return found
    if (isLate) return LATE
    if (memory.isClosed && memory.ready === 0 && memory.leases > 0 && memory.leases === memory.taken) {
      throw deadlock(caller, memory.first, { kind: 'Queue', mode: 'take' }, 'has all messages in use of')
    }
    isLate = wait(filled.second, count, left(), (toUse ? USE : TAKE) + PURPOSES * FILLED)
  }
}

/** Blocks until a word has changed. True if the time is over. */
function wait (word, value, timeout, purpose) {
  return agent().waitFor(word.address, value, timeout, purpose) === 'timed-out'
}

module.exports = { LATE, PUT, TAKE, USE, close, finish, owing, put, putBack, putBlocking, recover, take, takeBlocking }
