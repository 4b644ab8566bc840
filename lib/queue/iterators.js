'use strict'

/**
 * Iterators over the messages of a queue.
 *
 * A message that the asynchronous one takes is in use until its promise resolves. So if `return` or `throw` ends the
 * iteration before, the message comes back. The calls of `next` that are pending resolve as at the end of the queue.
 */

const { createMap, shield } = require('../util/intrinsics')
const { Steps } = require('../waiting/waiter')
const { calling, isInVain } = require('./blocking')
const { ENDED, TAKE } = require('./memory')
const { owingOn } = require('./owing')
const { ended, valueInTurn } = require('./reading')
const { putBack, take } = require('./steps')
const { promised } = require('./waits')

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
    this.pending = iteration.pending
    this.lease = undefined
    this.isOver = false
  }

  end () {
    super.end()
    if (this.lease === undefined) this.pending.delete(this)
  }

  /** Ends it without a message: one that it has comes back. If that has been removed, it is the result. */
  withdraw (memory) {
    this.pending.delete(this)
    if (this.lease !== undefined && this.lease.serial === 0) return
    this.isOver = true
    if (this.lease !== undefined) owingOn(memory, putBack, this.lease)
    else if (this.waiter !== undefined) this.waiter.withdraw()
  }

  /** Returns the result. The message has been removed, unless it was put back. */
  given (value) {
    this.pending.delete(this)
    return resultOf(this.isOver ? undefined : value)
  }
}

function takeNext (memory, next) {
  // Not only of this call: it may be over before this call is one of the pending ones.
  if (next.iteration.isOver) return ENDED
  next.pending.set(next, true)
  const found = take(memory, null)
  if (!isInVain(found) && found !== ENDED) next.lease = found
  return found
}

const NEXT = {
  caller: CALLER,
  optionsOf: (signal) => ({ timeout: Infinity, signal }),
  describe: (_, next, limits, caller) => calling(TAKE, takeNext, next, limits, caller),
  finish (lease, memory, next) {
    if (lease === ENDED || next.isOver) return next.given(undefined)
    let value
    try {
      value = lease.value
    } catch (_) {
      // The call may have come from the depth of the stack.
      return resultInTurn(memory, next, valueInTurn(lease, CALLER, memory))
    }
    const end = ended(memory, lease)
    return end === undefined ? next.given(value) : resultInTurn(memory, next, value, end)
  }
}

/** @param {unknown} value of the message, or its promise */
async function resultInTurn (memory, next, value, end) {
  try {
    const message = await value
    await (end || ended(memory, next.lease))
    return next.given(message)
  } catch (error) {
    if (next.isOver) return resultOf(undefined)
    next.pending.delete(next)
    throw error
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
      return promised(NEXT, queue, next, signal, next)
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

module.exports = { Messages, MessagesAsync }
