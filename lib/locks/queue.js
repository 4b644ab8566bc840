'use strict'

/**
 * `Queue`: a bounded queue of messages in shared memory, for any number of threads that put and take.
 *
 * A message is a copy. `take` delivers it at most once, `use` at least once: if the callback fails, or the thread ends,
 * the message is delivered again. queue/memory.js has the steps, and why a thread may die at any of them.
 */

const { RangeError, TypeError, bare, isInteger, shield } = require('../util/intrinsics')
const { option } = require('../util/options')
const { describe } = require('../util/values')
const { hideFrames, queueClosed, throwIfAborted, timeoutError } = require('../waiting/errors')
const { assertWorker, assertFunction, assertNoPromise, waitOptions } = require('../waiting/options')
const Steps = require('../waiting/steps')
const { contextOfWait } = require('./observe/diagnostics')
const { callOf } = require('./observe/stalls')
const { uses } = require('./observe/taken')
const { theList } = require('./hold/hold')
const { becomeView, defineMembers, defineSize, newMemory, wordOf } = require('./view')
const { FORMATS, write } = require('./queue/format')
const { MOST_BYTES, MOST_CAPACITY, bytesOf } = require('./queue/layout')
const { BUSY, ENDED, LATE, NOTHING, QueueMemory } = require('./queue/memory')
const {
  blocking, close, finish, owing, owingOn, put, putBack, putBlocking, recover, take, takeBlocking
} = require('./queue/steps')
const { finishLater, isPutting, putLater, takeLater } = require('./queue/waits')

const SHAPE = {
  __proto__: null,
  settings: ['capacity', 'messageSize'],
  others: ['format'],
  sizeOf: (settings) => byteLength(settings[0], settings[1]),
  alignment: 8
}

class Queue {
  constructor (buffer, options) {
    const { settings, word } = becomeView(this, buffer, options, 'Queue', SHAPE)
    this.capacity = settings[0]
    this.messageSize = settings[1]
    word.queue = new QueueMemory(word, this)
    word.queue.format = formatOf(option(options, 'format', 'clone'), 'Queue')
  }

  /** Returns how many bytes a value has as a message. */
  static sizeOf (value, format = 'clone') {
    return write(value, formatOf(format, 'sizeOf'), 'sizeOf').size
  }

  /** Whether no put that begins now succeeds. */
  get closed () {
    return memoryOf(this).isClosed
  }

  /** Whether it is closed, and no message is left or in use. */
  get ended () {
    return repaired(memoryOf(this)).isEnded
  }

  /** How many messages wait to be taken. Those that came back are among them. */
  get length () {
    return memoryOf(this).length
  }

  /** How many messages are in use. */
  get inUse () {
    return repaired(memoryOf(this)).inUse
  }

  /** How many waiters there are: blocked threads and promises, of all threads. */
  get waiters () {
    const { filled, emptied } = memoryOf(this)
    return filled.waiters + emptied.waiters
  }

  put (value, options) {
    assertWorker('put', 'putAsync()')
    const memory = memoryOf(this)
    const { timeout } = waitOptions(options, 'put', false)
    const written = messageOf(memory, value, 'put')
    const found = blocking(memory, putBlocking, { written, timeout, told: undefined })
    if (found === ENDED) throw queueClosed('put')
    if (found === LATE) throw lateError(memory, 'put', timeout)
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
    const { timeout } = waitOptions(options, 'take', false)
    const found = blocking(memory, takeBlocking, { toUse: false, timeout, caller: 'take', told: undefined })
    if (found === LATE) throw lateError(memory, 'take', timeout)
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
    assertFunction(callback, 'useSync')
    const { timeout } = waitOptions(options, 'useSync', false)
    uses(theList())
    const lease = blocking(memory, takeBlocking, { toUse: true, timeout, caller: 'useSync', told: undefined })
    if (lease === LATE) throw lateError(memory, 'use', timeout)
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
      else owingOn(memory, finish, lease, true)
    }
    return true
  }

  close () {
    const memory = memoryOf(this)
    owing(memory, close)
  }

  /** Takes messages, blocking, until the queue has ended. */
  [Symbol.iterator] () {
    assertWorker('iterating', 'for await')
    memoryOf(this)
    return new Messages(() => resultOf(this.take()))
  }

  /** Takes messages until the queue has ended. */
  [Symbol.asyncIterator] () {
    memoryOf(this)
    return new MessagesAsync(async () => resultOf(await this.takeAsync()))
  }
}

const resultOf = (value) => ({ done: value === undefined, value })

/** An iterator over the messages of a queue. */
class Messages {
  constructor (next) {
    this.next = next
  }

  [Symbol.iterator] () {
    return this
  }
}

/** An iterator over the messages of a queue, by promises. */
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
  const wait = waitOptions(options, 'putAsync')
  const written = messageOf(memory, value, 'putAsync')
  throwIfAborted(wait.signal)
  let found = isPutting(memory) ? NOTHING : owing(memory, put, written, false)
  if (found === NOTHING || found === BUSY) {
    try {
      found = await putLater(memory, written.kept(), wait, steps)
    } finally {
      steps.end()
    }
  }
  if (found === ENDED) throw queueClosed('putAsync')
  if (found === LATE) throw hideFrames(lateError(memory, 'put', wait.timeout), awaitPut)
}

async function awaitTake (queue, options, steps) {
  const memory = memoryOf(queue)
  const wait = waitOptions(options, 'takeAsync')
  let lease = takeAtOnce(memory, false, wait)
  if (lease === NOTHING) lease = await awaitLease(memory, false, wait, steps, awaitTake)
  return lease === ENDED ? undefined : lease.value
}

async function awaitUse (queue, callback, options, steps) {
  const memory = memoryOf(queue)
  assertFunction(callback, 'use')
  const wait = waitOptions(options, 'use')
  if (steps.call !== undefined) uses(theList(), steps.call)
  let lease = takeAtOnce(memory, true, wait)
  if (lease === NOTHING) lease = await awaitLease(memory, true, wait, steps, awaitUse)
  if (lease === ENDED) return false
  const delivery = new Delivery(lease)
  try {
    await callback(lease.value, delivery.given)
  } catch (error) {
    owingOn(memory, putBack, lease)
    throw error
  }
  if (delivery.isPutBack) owingOn(memory, putBack, lease)
  else if (owingOn(memory, finish, lease, false) === BUSY) await finishLater(memory, lease)
  return true
}

/** Takes a message without waiting: a Lease, ENDED or NOTHING. NOTHING also if another thread is taking one. */
function takeAtOnce (memory, toUse, { signal }) {
  throwIfAborted(signal)
  const found = owing(memory, take, toUse, false)
  return found === BUSY ? NOTHING : found
}

/** Awaits a Lease or ENDED. A TimeoutError has the frames of `caller`'s caller. */
async function awaitLease (memory, toUse, wait, steps, caller) {
  try {
    const found = await takeLater(memory, toUse, wait, steps)
    if (found === LATE) throw hideFrames(lateError(memory, toUse ? 'use' : 'take', wait.timeout), caller)
    return found
  } finally {
    steps.end()
  }
}

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

/** Writes a value as a message of a queue. */
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

/** Returns how many bytes a queue takes. */
function byteLength (capacity, messageSize) {
  assertWithin(capacity, 'capacity', 1, MOST_CAPACITY)
  assertWithin(messageSize, 'messageSize', 0, MOST_BYTES)
  return bytesOf(capacity, messageSize)
}

function assertWithin (value, name, least, most) {
  if (!isInteger(value)) throw new TypeError('Queue: ' + name + ' must be an integer, not ' + describe(value))
  if (value < least || value > most) {
    throw new RangeError('Queue: ' + name + ' must be from ' + least + ' to ' + most + ', not ' + value)
  }
}

const lateError = (memory, mode, timeout) => timeoutError(memory.first, { kind: 'Queue', mode }, timeout)

const bytesFor = (options) => byteLength(option(options, 'capacity'), option(options, 'messageSize'))
const stateOf = ({ capacity, length, inUse, closed, waiters }) => ({ capacity, length, inUse, closed, waiters })

defineSize(Queue, byteLength, (options) => newMemory(bytesFor(options)))
defineMembers(Queue, ['kind', 'buffer', 'byteOffset', 'capacity', 'messageSize'], stateOf)

module.exports = Queue
