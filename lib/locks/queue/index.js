'use strict'

/**
 * `Queue`: a bounded queue of messages in shared memory, for any number of threads that put and take.
 *
 * A message is a copy. `take` delivers it at most once, `use` at least once: if the callback fails, or the thread ends,
 * the message is delivered again. memory.js has the steps, and why a thread may die at any of them.
 */

const { agent, assertStack } = require('../../agent/agent')
const { RangeError, TypeError, bare, shield } = require('../../util/intrinsics')
const { option } = require('../../util/options')
const { describe } = require('../../util/values')
const { LATE, hideFrames, queueClosed, queueUnreadable, throwIfAborted } = require('../../waiting/errors')
const {
  UNLIMITED, assertFunction, assertNoPromise, assertSynchronous, assertWorker, waitOptions
} = require('../../waiting/options')
const Steps = require('../../waiting/steps')
const { contextOfWait } = require('../observe/diagnostics')
const { callOf } = require('../observe/stalls')
const { uses } = require('../observe/taken')
const { theList } = require('../hold/hold')
const { assertWithin, becomeView, defineView, newMemory, wordOf } = require('../view')
const { FORMATS, write } = require('./format')
const { MOST_BYTES, MOST_CAPACITY, bytesOf } = require('./layout')
const { BUSY, ENDED, NOTHING, PUT, TAKE, USE, QueueMemory } = require('./memory')
const {
  blocking, close, endUse, lateError, owing, owingOn, put, putBack, putBackUnseen, recover, take
} = require('./steps')
const { isPutting, later } = require('./waits')

const SHAPE = {
  __proto__: null,
  settings: ['capacity', 'messageSize'],
  options: ['capacity', 'messageSize', 'format', 'byteOffset', 'name'],
  sizeOf: (settings) => byteLength(settings[0], settings[1]),
  alignment: 8
}

class Queue {
  constructor (buffer, options) {
    // It may throw, and from then on the memory is that of a queue.
    const format = formatOf(options === null ? 'clone' : option(options, 'format', 'clone'), 'Queue')
    const { word } = becomeView(this, buffer, options, 'Queue', SHAPE)
    word.queue = new QueueMemory(word, this)
    word.queue.format = format
  }

  static sizeOf (value, format = 'clone') {
    return write(value, formatOf(format, 'sizeOf'), 'sizeOf').size
  }

  get closed () {
    return memoryOf(this).isClosed
  }

  get ended () {
    return repaired(memoryOf(this)).isEnded
  }

  get length () {
    return repaired(memoryOf(this)).counts.length
  }

  get inUse () {
    return repaired(memoryOf(this)).counts.inUse
  }

  get waiters () {
    const { filled, emptied } = memoryOf(this)
    return filled.waiters + emptied.waiters
  }

  put (value, options) {
    assertWorker('put', 'putAsync()')
    const memory = memoryOf(this)
    const found = blocking(memory, putting(memory, value, waitOptions(options, 'put', false), 'put'))
    if (found === ENDED) throw queueClosed('put')
  }

  tryPut (value) {
    const memory = memoryOf(this)
    const written = messageOf(memory, value, 'tryPut')
    // The promises of this thread come first.
    const found = isPutting(memory) && !memory.isClosed ? BUSY : owing(memory, put, written)
    if (found === ENDED) throw queueClosed('tryPut')
    return found === true
  }

  putAsync (value, options) {
    const steps = newSteps()
    return steps.of(awaitPut(this, value, options, steps))
  }

  take (options) {
    assertWorker('take', 'takeAsync()')
    const memory = memoryOf(this)
    const wait = taking(TAKE, waitOptions(options, 'take', false), 'take')
    const found = blocking(memory, wait)
    if (found === ENDED) return undefined
    return wait.isDeep ? takenInDepth(memory, found, forever) : valueOf(found, 'take')
  }

  tryTake () {
    const memory = memoryOf(this)
    const isDeep = assertStack()
    const found = owingOn(memory, take, isDeep)
    if (found === NOTHING || found === BUSY || found === ENDED) return undefined
    return isDeep ? takenInDepth(memory, found) : valueOf(found, 'tryTake')
  }

  takeAsync (options) {
    const steps = newSteps()
    return steps.of(awaitTake(this, options, steps))
  }

  use (callback, options) {
    const steps = newSteps()
    return steps.of(awaitUse(this, callback, options, steps))
  }

  useSync (callback, options) {
    assertWorker('useSync', 'use()')
    const memory = memoryOf(this)
    assertSynchronous(callback, 'useSync', 'use()')
    const wait = taking(USE, waitOptions(options, 'useSync', false), 'useSync')
    uses(theList())
    const lease = blocking(memory, wait)
    if (lease === ENDED) return false
    const value = valueInUse(memory, lease, wait.isDeep)
    const delivery = new Delivery(lease)
    try {
      assertNoPromise(callback(value, delivery.given), 'useSync: callback', 'use()')
    } catch (error) {
      delivery.isPutBack = true
      throw error
    } finally {
      // If the engine interrupts the callback, by a time limit, the message stays in use until this thread ends.
      if (delivery.isPutBack) owingOn(memory, putBack, lease)
      else owingOn(memory, endUse, lease, forever)
    }
    return true
  }

  close () {
    const memory = memoryOf(this)
    owing(memory, close)
  }

  [Symbol.iterator] () {
    assertWorker('iterating', 'for await')
    memoryOf(this)
    return new Messages(() => resultOf(this.take()))
  }

  [Symbol.asyncIterator] () {
    memoryOf(this)
    return new MessagesAsync(async () => resultOf(await this.takeAsync()))
  }
}

const resultOf = (value) => ({ done: value === undefined, value })

class Messages {
  constructor (next) {
    this.next = next
  }

  [Symbol.iterator] () {
    return this
  }
}

class MessagesAsync {
  constructor (next) {
    this.next = next
  }

  [Symbol.asyncIterator] () {
    return this
  }
}

for (const Class of [Messages, MessagesAsync]) shield(Class, ['next'])

/** One call of a `use` callback: its argument, and its answer. */
class Delivery {
  constructor ({ attempt }) {
    this.isPutBack = false
    this.given = { attempt, putBack: () => { this.isPutBack = true } }
  }
}
bare(Delivery)

function newSteps () {
  const steps = new Steps()
  steps.call = callOf()
  steps.context = contextOfWait()
  return steps
}

// ——— Reading ———

const forever = () => Infinity

/** Reads a message that has been taken. */
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
      owingOn(memory, putBackUnseen, lease)
      throw error
    }
    owingOn(memory, endUse, lease, forever)
    throw queueUnreadable('useSync', error, lease)
  }
}

/**
 * Takes a message in use, deep in the stack. Undefined if that would have to wait: then
 * nothing has been changed.
 */
function takenInDepth (memory, lease, left) {
  const value = valueInUse(memory, lease, true)
  if (owingOn(memory, endUse, lease, left) !== BUSY) return value
  owingOn(memory, putBackUnseen, lease)
  return undefined
}

// ——— Promises ———

async function awaitPut (queue, value, options, steps) {
  const memory = memoryOf(queue)
  const wait = putting(memory, value, waitOptions(options, 'putAsync'), 'putAsync')
  let found = tryOnce(memory, wait)
  if (found === NOTHING) {
    wait.argument.keep()
    found = inTime(await later(memory, wait, steps), memory, wait, awaitPut)
  } else if (!agent().settlesAtOnce()) await agent().turn()
  if (found === ENDED) throw queueClosed('putAsync')
}

async function awaitTake (queue, options, steps) {
  const memory = memoryOf(queue)
  const wait = taking(TAKE, waitOptions(options, 'takeAsync'), 'takeAsync')
  let lease = tryOnce(memory, wait)
  if (lease === NOTHING) lease = inTime(await later(memory, wait, steps), memory, wait, awaitTake)
  else if (!agent().settlesAtOnce()) await agent().turn()
  if (lease === ENDED) return undefined
  try {
    return lease.value
  } catch (_) {
    // The call may have come from the depth of the stack.
    await undefined
    return valueOf(lease, 'takeAsync')
  }
}

async function awaitUse (queue, callback, options, steps) {
  const memory = memoryOf(queue)
  assertFunction(callback, 'use')
  const wait = taking(USE, waitOptions(options, 'use'), 'use')
  if (steps.call !== undefined) uses(theList(), steps.call)
  let lease = tryOnce(memory, wait)
  if (lease === NOTHING) lease = inTime(await later(memory, wait, steps), memory, wait, awaitUse)
  else if (!agent().settlesAtOnce()) await agent().turn()
  if (lease === ENDED) return false
  let value
  try {
    value = lease.value
  } catch (_) {
    // The call may have come from the depth of the stack.
    await undefined
    value = await valueInTurn(memory, lease)
  }
  const delivery = new Delivery(lease)
  try {
    await callback(value, delivery.given)
  } catch (error) {
    owingOn(memory, putBack, lease)
    throw error
  }
  if (delivery.isPutBack) owingOn(memory, putBack, lease)
  else await ended(memory, lease)
  return true
}

/** Reads a message in use; if this thread cannot, the message is removed. */
async function valueInTurn (memory, lease) {
  try {
    return lease.value
  } catch (error) {
    await ended(memory, lease)
    throw queueUnreadable('use', error, lease)
  }
}

/** Ends the use of a message. Undefined if that needs no waiting. */
function ended (memory, lease) {
  return owingOn(memory, endUse, lease) === BUSY ? later(memory, calling(USE, endUse, lease, UNLIMITED)) : undefined
}

/** Tries a step without waiting. NOTHING also if another thread, or an earlier promise of this one, comes first. */
function tryOnce (memory, { mode, step, argument, signal }) {
  throwIfAborted(signal)
  const found = mode === PUT && isPutting(memory) ? BUSY : owing(memory, step, argument)
  return found === BUSY ? NOTHING : found
}

/** Returns a step's answer, unless it is LATE. The TimeoutError has the frames of `caller`'s caller. */
function inTime (found, memory, wait, caller) {
  if (found === LATE) throw hideFrames(lateError(memory, wait), caller)
  return found
}

/**
 * Describes a call: its step, and how long it waits for that; its ToldWait, if it waits; and whether it has come, if it
 * blocks, from the depth of the stack.
 */
const calling = (mode, step, argument, { timeout, signal }, caller) => (
  { mode, step, argument, timeout, signal, caller, told: undefined, isDeep: false })
const putting = (memory, value, wait, caller) => calling(PUT, put, messageOf(memory, value, caller), wait, caller)
const taking = (mode, wait, caller) => calling(mode, take, mode === USE, wait, caller)

// ——— Arguments ———

/** @throws {TypeError} it is no queue */
function memoryOf (queue) {
  const memory = wordOf(queue).queue
  if (memory === undefined) throw new TypeError('this method must be called on a Queue, not on ' + describe(queue))
  return memory
}

/** Frees slots that a dead thread has lost, and returns the memory. They would count as in use. */
function repaired (memory) {
  if (memory.takeLock.mayBeAbandoned) owing(memory, recover)
  return memory
}

function messageOf (memory, value, caller) {
  const written = write(value, memory.format, caller)
  if (written.size > memory.messageSize) {
    throw new RangeError(caller + ': value has ' + written.size + ' bytes as a message, but messageSize is ' +
      memory.messageSize)
  }
  return written
}

function formatOf (name, caller) {
  const format = typeof name === 'string' ? FORMATS[name] : undefined
  if (format === undefined) throw new TypeError(caller + ': format must be "clone" or "json", not ' + describe(name))
  return format
}

function byteLength (capacity, messageSize) {
  assertWithin(capacity, 'Queue: capacity', 1, MOST_CAPACITY)
  assertWithin(messageSize, 'Queue: messageSize', 0, MOST_BYTES)
  return bytesOf(capacity, messageSize)
}

function stateOf (queue) {
  const { capacity, closed, waiters } = queue
  const { length, inUse } = repaired(memoryOf(queue)).counts
  return { capacity, length, inUse, closed, waiters }
}

defineView(Queue, stateOf, byteLength, (options) => (
  newMemory(byteLength(option(options, 'capacity'), option(options, 'messageSize')))))

module.exports = Queue
