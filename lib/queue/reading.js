'use strict'

/**
 * The values of messages that have been taken, and iterators over them.
 *
 * A thread may lack the stack to read a message. Deep in the stack that changes nothing. Otherwise the message is
 * removed, since it would come first for ever, and the error has its bytes. A promise first reads again in a turn of
 * its own.
 *
 * A message that the asynchronous iterator takes is in use until its promise resolves. So if `return` or `throw` ends
 * the iteration before, the message comes back. The pending calls of `next` resolve as at the end of the queue.
 */

const { createArray, createMap, setPrototypeOf, shield } = require('../util/intrinsics')
const { queueUnreadable } = require('../waiting/errors')
const { UNLIMITED } = require('../waiting/wait-options')
const { Steps } = require('../waiting/waiter')
const { BUSY, ENDED, TAKE, USE } = require('./memory')
const { calling, endBatch, endUse, isInVain, owingOn, putBack, take } = require('./steps')
const { later, promised } = require('./waits')

const ArrayPrototype = Array.prototype

const forever = () => Infinity

const isNone = (found) => isInVain(found) || found === ENDED

/** Reads a message that has been taken for good, if any. */
function valueOf (lease, caller) {
  if (isNone(lease)) return undefined
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
 * Reads a batch on, behind the values that it has; `count` of its leases are to be removed then. If the first message
 * cannot be read, that is one, unless the call came from the depth of the stack. May run a program's code, if that has
 * replaced functions of v8's.
 */
function readOn (memory, batch, isDeep) {
  const { array, leases } = batch
  batch.error = undefined
  try {
    while (array.length < leases.length) {
      const lease = leases[array.length]
      memory.copyOut(lease)
      array[array.length] = lease.value
    }
  } catch (error) {
    batch.error = error
  }
  batch.isBad = !isDeep && array.length === 0 && leases[0].copy !== undefined
  batch.count = batch.isBad ? 1 : array.length
  return batch
}

const newBatch = (leases) => (
  { __proto__: null, leases, array: createArray(0), error: undefined, isBad: false, count: 0 })

/** Returns the values of a batch as an array. Throws if the first one could not be read. */
function given ({ array, error, isBad, leases }, caller) {
  if (array.length === 0) throw isBad ? queueUnreadable(caller, error, leases[0]) : error
  return setPrototypeOf(array, ArrayPrototype) && array
}

/** Reads a batch and removes it. If that has to wait, and `left` is undefined, all are put back, and there are none. */
function readBatch (memory, leases, caller, isDeep, left) {
  if (isNone(leases)) return []
  const batch = readOn(memory, newBatch(leases), isDeep)
  if (owingOn(memory, endBatch, batch, left) !== BUSY) return given(batch, caller)
  batch.count = 0
  owingOn(memory, endBatch, batch)
  return []
}

async function readBatchInTurn (memory, leases, caller) {
  if (isNone(leases)) return []
  const batch = readOn(memory, newBatch(leases), false)
  if (batch.error !== undefined) {
    // The call may have come from the depth of the stack.
    await undefined
    readOn(memory, batch, false)
  }
  await ended(memory, batch, endBatch)
  return given(batch, caller)
}

// ——— Iterators ———

const CALLER = 'messages'

const resultOf = (value) => ({ done: value === undefined, value })

/** Blocks for each message. */
class Messages {
  constructor (queue) {
    let isOver = false
    this.next = () => resultOf(isOver ? undefined : queue.take())
    this.return = (value) => {
      isOver = true
      return { done: true, value }
    }
    this.throw = (error) => {
      isOver = true
      throw error
    }
  }

  [Symbol.iterator] () {
    return this
  }
}

/** A call of `next`. It is one of the `pending` ones until it has a result. */
class Next extends Steps {
  constructor (iteration) {
    super()
    this.iteration = iteration
    this.lease = undefined
    this.isOver = false
  }

  end () {
    super.end()
    if (this.lease === undefined) this.iteration.pending.delete(this)
  }

  /** Ends it without a message: one that it has comes back. If that has been removed, it is the result. */
  withdraw (memory) {
    this.iteration.pending.delete(this)
    if (this.lease !== undefined && this.lease.serial === 0) return
    this.isOver = true
    if (this.lease !== undefined) owingOn(memory, putBack, this.lease)
    else if (this.waiter !== undefined) this.waiter.withdraw()
  }

  /** Returns the result. The message has been removed, unless it was put back. */
  given (value) {
    this.iteration.pending.delete(this)
    return resultOf(this.isOver ? undefined : value)
  }
}

function takeNext (memory, next) {
  // Not only of this call: it may be over before this call is one of the pending ones.
  if (next.iteration.isOver) return ENDED
  next.iteration.pending.set(next, true)
  const found = take(memory, null)
  if (!isNone(found)) next.lease = found
  return found
}

const NEXT = {
  isAsync: true,
  optionsOf: (signal) => ({ timeout: Infinity, signal }),
  describe: (_, next, limits, caller) => calling(TAKE, takeNext, next, limits, caller),
  async finish (lease, memory, next) {
    if (lease === ENDED || next.isOver) return next.given(undefined)
    let value
    try {
      try {
        value = lease.value
      } catch (_) {
        // The call may have come from the depth of the stack.
        value = await valueInTurn(lease, CALLER, memory)
      }
      const end = ended(memory, lease)
      if (end !== undefined) await end
      return next.given(value)
    } catch (error) {
      if (next.isOver) return resultOf(undefined)
      next.iteration.pending.delete(next)
      throw error
    }
  }
}

/** Waits for each message by a promise. */
class MessagesAsync {
  constructor (queue, memory, signal) {
    const iteration = { __proto__: null, pending: createMap(), isOver: false }
    const end = async (value) => {
      iteration.isOver = true
      iteration.pending.forEach((_, next) => next.withdraw(memory))
      return { done: true, value: await value }
    }
    this.next = () => {
      if (iteration.isOver) return end()
      const next = new Next(iteration)
      return promised(CALLER, NEXT, queue, next, signal, next)
    }
    this.return = end
    this.throw = async (error) => {
      await end()
      throw error
    }
  }

  [Symbol.asyncIterator] () {
    return this
  }
}

for (const Class of [Messages, MessagesAsync]) shield(Class, ['next', 'return', 'throw'])

module.exports = {
  Messages, MessagesAsync, ended, forever, readBatch, readBatchInTurn, valueInTurn, valueInUse, valueOf
}
