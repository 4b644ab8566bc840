'use strict'

/**
 * The values of messages that have been taken.
 *
 * A thread may lack the stack to read a message. Deep in the stack that changes nothing. Otherwise the message is
 * removed, since it would come first for ever, and the error has its bytes. A promise first reads again in a turn of
 * its own.
 */

const { createArray, setPrototypeOf } = require('../util/intrinsics')
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

/**
 * Reads on, behind the values that the array has. Returns the error of a message that cannot be read. May run a
 * program's code, if that has replaced functions of v8's.
 */
function readOn (memory, leases, array) {
  try {
    while (array.length < leases.length) {
      const lease = leases[array.length]
      memory.copyOut(lease)
      array[array.length] = lease.value
    }
    return undefined
  } catch (error) {
    return error
  }
}

/** Whether the first message of a batch cannot be read: then it is removed alone. */
const isUnreadable = (leases, array) => array.length === 0 && leases[0].copy !== undefined

/** What `endBatch` removes: the messages that were read, or the one that cannot be. */
const endOf = (leases, array, isBad) => ({ __proto__: null, leases, count: isBad ? 1 : array.length })

/** Returns the values of a batch as an array. Throws if the first one could not be read. */
function given (leases, array, error, isBad, caller) {
  if (array.length === 0) throw isBad ? queueUnreadable(caller, error, leases[0]) : error
  return setPrototypeOf(array, ArrayPrototype) && array
}

/**
 * Reads a batch and removes it. If that has to wait, and `left` is undefined, all are put back, and there are none.
 * @param {boolean} isDeep whether the call came from the depth of the stack
 */
function readBatch (memory, leases, caller, isDeep, left) {
  const array = createArray(0)
  const error = readOn(memory, leases, array)
  const isBad = !isDeep && isUnreadable(leases, array)
  if (owingOn(memory, endBatch, endOf(leases, array, isBad), left) !== BUSY) {
    return given(leases, array, error, isBad, caller)
  }
  owingOn(memory, endBatch, endOf(leases, []))
  return []
}

async function readBatchInTurn (memory, leases, caller) {
  const array = createArray(0)
  let error = readOn(memory, leases, array)
  if (error !== undefined) {
    // The call may have come from the depth of the stack.
    await undefined
    error = readOn(memory, leases, array)
  }
  const isBad = isUnreadable(leases, array)
  await ended(memory, endOf(leases, array, isBad), endBatch)
  return given(leases, array, error, isBad, caller)
}

module.exports = {
  ended, forever, readBatch, readBatchInTurn, valueInTurn, valueInUse, valueOf
}
