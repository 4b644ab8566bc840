'use strict'

/**
 * `Queue`: a bounded queue of messages in shared memory, for any number of threads that put and take.
 *
 * A message is a copy. `take` delivers it at most once, `use` at least once: if the callback fails, or the thread ends,
 * the message is delivered again. memory.js has the steps, and why a thread may die at any of them.
 */

const { RangeError, TypeError, bare, shield } = require('../../util/intrinsics')
const { option } = require('../../util/options')
const { describe } = require('../../util/values')
const { LATE, hideFrames, queueClosed, throwIfAborted } = require('../../waiting/errors')
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
const { blocking, close, endUse, lateError, owing, owingOn, put, putBack, recover, take } = require('./steps')
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
    const { word } = becomeView(this, buffer, options, 'Queue', SHAPE)
    word.queue = new QueueMemory(word, this)
    word.queue.format = formatOf(option(options, 'format', 'clone'), 'Queue')
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
    return memoryOf(this).length
  }

  get inUse () {
    return repaired(memoryOf(this)).inUse
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
    const found = isPutting(memory) && !memory.isClosed ? BUSY : owing(memory, put, written, false)
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
    const found = blocking(memory, taking(TAKE, waitOptions(options, 'take', false), 'take'))
    return found === ENDED ? undefined : found.value
  }

  tryTake () {
    const memory = memoryOf(this)
    const found = owing(memory, take, false, false)
    return found === NOTHING || found === BUSY || found === ENDED ? undefined : found.value
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
    const delivery = new Delivery(lease)
    try {
      assertNoPromise(callback(lease.value, delivery.given), 'useSync: callback', 'use()')
    } catch (error) {
      delivery.isPutBack = true
      throw error
    } finally {
      // If the engine interrupts the callback, by a time limit, the message stays in use until this thread ends.
      if (delivery.isPutBack) owingOn(memory, putBack, lease)
      else owingOn(memory, endUse, lease, true)
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

// ——— Promises ———

async function awaitPut (queue, value, options, steps) {
  const memory = memoryOf(queue)
  const wait = putting(memory, value, waitOptions(options, 'putAsync'), 'putAsync')
  let found = tryOnce(memory, wait)
  if (found === NOTHING) {
    wait.argument.keep()
    found = inTime(await later(memory, wait, steps), memory, wait, awaitPut)
  }
  if (found === ENDED) throw queueClosed('putAsync')
}

async function awaitTake (queue, options, steps) {
  const memory = memoryOf(queue)
  const wait = taking(TAKE, waitOptions(options, 'takeAsync'), 'takeAsync')
  let lease = tryOnce(memory, wait)
  if (lease === NOTHING) lease = inTime(await later(memory, wait, steps), memory, wait, awaitTake)
  return lease === ENDED ? undefined : lease.value
}

async function awaitUse (queue, callback, options, steps) {
  const memory = memoryOf(queue)
  assertFunction(callback, 'use')
  const wait = taking(USE, waitOptions(options, 'use'), 'use')
  if (steps.call !== undefined) uses(theList(), steps.call)
  let lease = tryOnce(memory, wait)
  if (lease === NOTHING) lease = inTime(await later(memory, wait, steps), memory, wait, awaitUse)
  if (lease === ENDED) return false
  const delivery = new Delivery(lease)
  try {
    await callback(lease.value, delivery.given)
  } catch (error) {
    owingOn(memory, putBack, lease)
    throw error
  }
  if (delivery.isPutBack) owingOn(memory, putBack, lease)
  else if (owingOn(memory, endUse, lease, false) === BUSY) await later(memory, calling(USE, endUse, lease, UNLIMITED))
  return true
}

/** Tries a step without waiting. NOTHING also if another thread, or an earlier promise of this one, comes first. */
function tryOnce (memory, { mode, step, argument, signal }) {
  throwIfAborted(signal)
  const found = mode === PUT && isPutting(memory) ? BUSY : owing(memory, step, argument, false)
  return found === BUSY ? NOTHING : found
}

/** Returns a step's answer, unless it is LATE. The TimeoutError has the frames of `caller`'s caller. */
function inTime (found, memory, wait, caller) {
  if (found === LATE) throw hideFrames(lateError(memory, wait), caller)
  return found
}

/** Describes a call: its step, and how long it waits for that; and its ToldWait, if it waits. */
const calling = (mode, step, argument, { timeout, signal }, caller) => (
  { mode, step, argument, timeout, signal, caller, told: undefined })
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
  if (memory.takeLock.mayBeAbandoned) owing(memory, recover, false)
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

const stateOf = ({ capacity, length, inUse, closed, waiters }) => ({ capacity, length, inUse, closed, waiters })

defineView(Queue, stateOf, byteLength, (options) => (
  newMemory(byteLength(option(options, 'capacity'), option(options, 'messageSize')))))

module.exports = Queue
