'use strict'

/**
 * The values of messages that have been taken.
 *
 * A thread may lack the stack to read a message. Deep in the stack that changes nothing. Otherwise the message is
 * removed, since it would come first for ever, and the error has its bytes. A promise first reads again in a turn of
 * its own.
 */

const { bare, createArray, setPrototypeOf } = require('../util/intrinsics')
const { queueUnreadable } = require('../waiting/errors')
const { UNLIMITED } = require('../waiting/wait-options')
const { calling } = require('./blocking')
const { BUSY, USE } = require('./memory')
const { owingOn } = require('./owing')
const { endBatch, endUse, putBack } = require('./steps')
const { later } = require('./waits')

const ArrayPrototype = Array.prototype

const forever = () => Infinity

/** Reads a message that has been taken for good. */
function valueOf (lease, caller) {
  try {
    return lease.value
  } catch (error) {
    throw queueUnreadable(caller, error, lease)
  }
}

/** Reads a message in use. If this thread cannot, the message is removed; or put back, if the stack is deep. */
function valueInUse (memory, lease, isDeep) {
  try {
    return lease.value
  } catch (error) {
    if (isDeep) {
      owingOn(memory, putBack, lease)
      throw error
    }
    owingOn(memory, endUse, lease, forever)
    throw queueUnreadable('useSync', error, lease)
  }
}

/** Reads a message in a turn of its own. If this thread cannot, and it is in use, the message is removed. */
async function valueInTurn (lease, caller, memory) {
  await undefined
  try {
    return lease.value
  } catch (error) {
    if (memory !== undefined) await ended(memory, lease)
    throw queueUnreadable(caller, error, lease)
  }
}

/** Ends a use of messages, by a step. Undefined if that needs no waiting. */
function ended (memory, used, step = endUse) {
  return owingOn(memory, step, used) === BUSY ? later(memory, calling(USE, step, used, UNLIMITED)) : undefined
}

// ——— Several messages ———

/** The values of a batch, as far as they have been read. */
class Values {
  constructor (leases) {
    this.leases = leases
    this.array = createArray(leases.length)
    this.count = 0
    // Why the next one cannot be read.
    this.error = undefined
    // Whether all are put back, since the stack is deep.
    this.isLeft = false
  }

  /** Reads on. Returns whether it has read all. May run a program's code, if that has replaced functions of v8's. */
  read (memory) {
    const { array, leases } = this
    try {
      for (; this.count < leases.length; this.count++) {
        const lease = leases[this.count]
        memory.copyOut(lease)
        array[this.count] = lease.value
      }
      return true
    } catch (error) {
      this.error = error
      return false
    }
  }

  /** How many messages are removed: those that were read, or the first one, which cannot be. */
  get removed () {
    if (this.isLeft) return 0
    return this.count > 0 || this.leases[0].copy === undefined ? this.count : 1
  }

  /** Returns them as an array. Throws if the first one could not be read. */
  given (caller) {
    const { array, count, error, isLeft, leases } = this
    const first = leases[0]
    if (count === 0) throw isLeft || first.copy === undefined ? error : queueUnreadable(caller, error, first)
    array.length = count
    return setPrototypeOf(array, ArrayPrototype) && array
  }
}
bare(Values)

const endOf = (leases, count) => ({ __proto__: null, leases, count })

/**
 * Reads a batch and removes it. If that has to wait, and `left` is undefined, all are put back, and there are none.
 * @param {boolean} isDeep whether the call came from the depth of the stack
 */
function readBatch (memory, leases, caller, isDeep, left) {
  const values = new Values(leases)
  values.read(memory)
  values.isLeft = isDeep && values.count === 0
  if (owingOn(memory, endBatch, endOf(leases, values.removed), left) !== BUSY) return values.given(caller)
  owingOn(memory, endBatch, endOf(leases, 0))
  return []
}

async function readBatchInTurn (memory, leases, caller) {
  const values = new Values(leases)
  if (!values.read(memory)) {
    // The call may have come from the depth of the stack.
    await undefined
    values.read(memory)
  }
  await ended(memory, endOf(leases, values.removed), endBatch)
  return values.given(caller)
}

module.exports = {
  ended, forever, readBatch, readBatchInTurn, valueInTurn, valueInUse, valueOf
}
