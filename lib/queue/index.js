'use strict'

/**
 * `Queue`: a bounded queue of messages in shared memory, for any number of threads that put and take.
 *
 * A message is a copy. `take` delivers it at most once, `use` at least once: if the callback fails, or the thread ends,
 * the message is delivered again. memory.js has the steps, and why a thread may die at any of them.
 */

const { agent, assertStack } = require('../agent/agent')
const { TypeError, bare } = require('../util/intrinsics')
const { option } = require('../util/options')
const { describe } = require('../util/values')
const { isMainThread } = require('../util/worker-threads')
const { LATE, hideFrames, queueClosed, throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const {
  UNLIMITED, assertFunction, assertNoPromise, assertSynchronous, assertWorker, signalOption, waitOptions
} = require('../waiting/wait-options')
const Steps = require('../waiting/wait-steps')
const { wordOf } = require('../holding/view-word')
const { assertWithin, initView, defineView, newMemory } = require('../view')
const { assertMax, batchOf, discardOf, formatOf, isLast, messageOf, useOptions } = require('./arguments')
const { write } = require('./format')
const { Messages, MessagesAsync, resultOf } = require('./iterators')
const { MOST_BYTES, MOST_CAPACITY, bytesOf } = require('./layout')
const { BUSY, ENDED, IDLE, NOTHING, PUT, TAKE, USE, QueueMemory } = require('./memory')
const {
  ended, forever, readBatchInTurn, takeBatch, valueInTurn, valueInUse, valueOf
} = require('./reading')
const {
  blocking, calling, clear, close, defer, endUse, idle, lateError, owing, owingOn, put, putBack, recover, take, takeMany
} = require('./steps')
const { isPutting, later } = require('./waits')

const SHAPE = {
  __proto__: null,
  settings: ['capacity', 'messageSize'],
  options: ['capacity', 'messageSize', 'format', 'byteOffset', 'name'],
  sizeOf: (settings) => byteLength(settings[0], settings[1]),
  alignment: 8
}

/** The argument of `takeBatch` that takes a message deep in the stack: in one step, which an interrupt undoes. */
const ONE = { __proto__: null, max: 1, isDeep: true }

class Queue {
  constructor (buffer, options) {
    // It may throw, and from then on the memory is that of a queue.
    const format = formatOf(options === null ? 'clone' : option(options, 'format', 'clone'), 'Queue')
    const { word } = initView(this, buffer, options, 'Queue', SHAPE)
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
    const { filled, emptied, idled } = memoryOf(this)
    return filled.waiters + emptied.waiters + idled.waiters
  }

  put (value, options) {
    assertWorker('put', 'putAsync()')
    const memory = memoryOf(this)
    const wait = putting(memory, value, waitOptions(options, 'put', false), 'put')
    assertStack()
    const found = blocking(memory, wait)
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
    const wait = waitOptions(options, 'take', false)
    const isDeep = assertStack()
    const found = blocking(memory, isDeep ? calling(TAKE, takeBatch, ONE, wait, 'take') : taking(TAKE, wait, 'take'))
    if (found === ENDED) return undefined
    return isDeep ? found.given('take')[0] : valueOf(found, 'take')
  }

  tryTake () {
    const memory = memoryOf(this)
    const isDeep = assertStack()
    const found = isDeep ? owingOn(memory, takeBatch, ONE) : owingOn(memory, take)
    if (found === NOTHING || found === BUSY || found === ENDED) return undefined
    return isDeep ? found.given('tryTake')[0] : valueOf(found, 'tryTake')
  }

  takeAsync (options) {
    const steps = newSteps()
    return steps.of(awaitTake(this, options, steps))
  }

  takeMany (max, options) {
    assertWorker('takeMany', 'takeManyAsync()')
    const memory = memoryOf(this)
    const wait = waitOptions(options, 'takeMany', false)
    const found = blocking(memory, calling(TAKE, takeBatch, batchOf(max, 'takeMany'), wait, 'takeMany'))
    return found === ENDED ? [] : found.given('takeMany')
  }

  tryTakeMany (max) {
    const memory = memoryOf(this)
    const found = owingOn(memory, takeBatch, batchOf(max, 'tryTakeMany'))
    return found === NOTHING || found === BUSY || found === ENDED ? [] : found.given('tryTakeMany')
  }

  takeManyAsync (max, options) {
    const steps = newSteps()
    return steps.of(awaitTakeMany(this, max, options, steps))
  }

  use (callback, options) {
    const steps = newSteps()
    return steps.of(awaitUse(this, callback, options, steps))
  }

  useSync (callback, options) {
    assertWorker('useSync', 'use()')
    const memory = memoryOf(this)
    assertSynchronous(callback, 'useSync', 'use()')
    const limits = useOptions(options, 'useSync', false)
    const wait = taking(USE, limits, 'useSync', observer.callHere())
    const isDeep = assertStack()
    const lease = blocking(memory, wait)
    if (lease === ENDED) return false
    const value = valueInUse(memory, lease, isDeep)
    const delivery = new Delivery(memory, lease, limits)
    try {
      assertNoPromise(callback(value, delivery.given), 'useSync: callback', 'use()')
    } catch (error) {
      delivery.fails()
      throw error
    } finally {
      // If the engine interrupts the callback, by a time limit, the message stays in use until this thread ends.
      owingOn(memory, delivery.end, lease, forever)
    }
    return true
  }

  idle (options) {
    assertWorker('idle', 'onIdle()')
    const memory = memoryOf(this)
    const wait = calling(IDLE, idle, undefined, waitOptions(options, 'idle', false), 'idle')
    assertStack()
    blocking(memory, wait)
  }

  onIdle (options) {
    const steps = newSteps()
    return steps.of(awaitIdle(this, options, steps))
  }

  clear () {
    const found = owing(memoryOf(this), clear, undefined, isMainThread ? undefined : forever)
    return found === BUSY ? 0 : found
  }

  clearAsync () {
    return awaitClear(this)
  }

  close (options) {
    const memory = memoryOf(this)
    owing(memory, close, discardOf(options))
  }

  [Symbol.iterator] () {
    assertWorker('iterating', 'for await')
    memoryOf(this)
    return new Messages(() => resultOf(this.take()))
  }

  [Symbol.asyncIterator] () {
    return this.messages()
  }

  messages (options) {
    memoryOf(this)
    const signal = signalOption(options, 'messages')
    return new MessagesAsync(async () => resultOf(await this.takeAsync({ __proto__: null, signal })))
  }
}

/** One call of a `use` callback: its argument, and the step by which the use ends. */
class Delivery {
  constructor (memory, lease, { retriesLast }) {
    const { attempt, deaths } = lease
    this.retriesLast = retriesLast
    this.end = endUse
    this.given = { attempt, deaths, putBack: (options) => { this.end = stepOf(isLast(options)) } }
    memory.begin(lease)
  }

  /** Lets the message go back, since the callback has failed. */
  fails () {
    if (this.end === endUse) this.end = stepOf(this.retriesLast)
  }
}
bare(Delivery)

function newSteps () {
  const steps = new Steps()
  steps.call = observer.callOf()
  steps.context = observer.contextOfWait()
  return steps
}

// ——— Promises ———

async function awaitPut (queue, value, options, steps) {
  const memory = memoryOf(queue)
  const wait = putting(memory, value, waitOptions(options, 'putAsync'), 'putAsync')
  let found = tryOnce(memory, wait)
  const isAtOnce = found !== NOTHING
  if (!isAtOnce) {
    wait.argument.keep()
    found = inTime(await later(memory, wait, steps), memory, wait, awaitPut)
  }
  if (!settlesNow(memory, isAtOnce)) await agent().turn(memory)
  if (found === ENDED) throw queueClosed('putAsync')
}

async function awaitTake (queue, options, steps) {
  const memory = memoryOf(queue)
  const wait = taking(TAKE, waitOptions(options, 'takeAsync'), 'takeAsync')
  let lease = tryOnce(memory, wait)
  const isAtOnce = lease !== NOTHING
  if (!isAtOnce) lease = inTime(await later(memory, wait, steps), memory, wait, awaitTake)
  if (!settlesNow(memory, isAtOnce)) await agent().turn(memory)
  if (lease === ENDED) return undefined
  try {
    return lease.value
  } catch (_) {
    // The call may have come from the depth of the stack.
    await undefined
    return valueOf(lease, 'takeAsync')
  }
}

async function awaitTakeMany (queue, max, options, steps) {
  const memory = memoryOf(queue)
  const limits = waitOptions(options, 'takeManyAsync')
  assertMax(max, 'takeManyAsync')
  const wait = calling(TAKE, takeMany, max, limits, 'takeManyAsync')
  let leases = tryOnce(memory, wait)
  const isAtOnce = leases !== NOTHING
  if (!isAtOnce) leases = inTime(await later(memory, wait, steps), memory, wait, awaitTakeMany)
  if (!settlesNow(memory, isAtOnce)) await agent().turn(memory)
  return leases === ENDED ? [] : readBatchInTurn(memory, leases, 'takeManyAsync')
}

async function awaitClear (queue) {
  const memory = memoryOf(queue)
  const found = owing(memory, clear)
  return found === BUSY ? later(memory, calling(USE, clear, undefined, UNLIMITED)) : found
}

async function awaitUse (queue, callback, options, steps) {
  const memory = memoryOf(queue)
  assertFunction(callback, 'use')
  const limits = useOptions(options, 'use')
  const wait = taking(USE, limits, 'use', steps.call === undefined ? 0 : steps.call.place)
  let lease = tryOnce(memory, wait)
  const isAtOnce = lease !== NOTHING
  if (!isAtOnce) lease = inTime(await later(memory, wait, steps), memory, wait, awaitUse)
  if (!settlesNow(memory, isAtOnce)) await agent().turn(memory)
  if (lease === ENDED) return false
  let value
  try {
    value = lease.value
  } catch (_) {
    // The call may have come from the depth of the stack.
    await undefined
    value = await valueInTurn(memory, lease)
  }
  const delivery = new Delivery(memory, lease, limits)
  try {
    await callback(value, delivery.given)
  } catch (error) {
    delivery.fails()
    await ended(memory, lease, delivery.end)
    throw error
  }
  await ended(memory, lease, delivery.end)
  return true
}

async function awaitIdle (queue, options, steps) {
  const memory = memoryOf(queue)
  const wait = calling(IDLE, idle, undefined, waitOptions(options, 'onIdle'), 'onIdle')
  const isAtOnce = tryOnce(memory, wait) !== NOTHING
  if (!isAtOnce) inTime(await later(memory, wait, steps), memory, wait, awaitIdle)
  if (!settlesNow(memory, isAtOnce)) await agent().turn(memory)
}

/** Tries a step without waiting. NOTHING also if another thread, or an earlier promise of this one, comes first. */
function tryOnce (memory, { mode, step, argument, signal }) {
  throwIfAborted(signal)
  const found = mode === PUT && isPutting(memory) ? BUSY : owing(memory, step, argument)
  return found === BUSY ? NOTHING : found
}

/** Whether a promise settles now. It overtakes no promise of the queue that awaits a turn. */
const settlesNow = (memory, isAtOnce) => isAtOnce ? agent().settlesAtOnce() : memory.awaitingTurn === 0

/** Returns a step's answer, unless it is LATE. The TimeoutError has the frames of `caller`'s caller. */
function inTime (found, memory, wait, caller) {
  if (found === LATE) throw hideFrames(lateError(memory, wait), caller)
  return found
}

const putting = (memory, value, wait, caller) => calling(PUT, put, messageOf(memory, value, caller), wait, caller)
/** @param {number} [place] of the call, if the message is to be used, and not taken for good */
const taking = (mode, wait, caller, place) => calling(mode, take, place, wait, caller)

/** Returns the step that puts a message back. */
const stepOf = (last) => last ? defer : putBack

// ——— Arguments ———

/** @throws {TypeError} it is no queue */
function memoryOf (queue) {
  const memory = wordOf(queue).queue
  if (memory === undefined) throw new TypeError('this method must be called on a Queue, not on ' + describe(queue))
  return memory
}

/** Frees slots that are lost, or to be discarded; returns the memory. */
function repaired (memory) {
  if (memory.takeLock.mayBeAbandoned) owing(memory, recover)
  if (memory.discards && !memory.isEnded) owing(memory, clear)
  return memory
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

defineView(Queue, ['capacity', 'messageSize'], stateOf, byteLength, (options) => (
  newMemory(byteLength(option(options, 'capacity'), option(options, 'messageSize')))))

module.exports = Queue
