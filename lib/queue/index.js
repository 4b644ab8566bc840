'use strict'

/**
 * `Queue`: a bounded queue of messages in shared memory, for any number of threads that put and take.
 *
 * A message is a copy. `take` delivers it at most once, `use` at least once: if the callback fails, or the thread ends,
 * the message is delivered again. memory.js has the steps, and why a thread may die at any of them.
 */

const { assertStack } = require('../agent/find-agent')
const { RangeError, TypeError, bare } = require('../util/intrinsics')
const { assertOptions, describe, onlyFlag, option } = require('../util/values')
const { isMainThread } = require('../util/worker-threads')
const { queueClosed } = require('../waiting/errors')
const observer = require('../waiting/observer')
const {
  assertFunction, assertNoPromise, assertSynchronous, assertWorker, signalOption, waitLimits, waitOptions
} = require('../waiting/wait-options')
const { assertWithin, initView, defineView, newMemory } = require('../view')
const { FORMATS, write } = require('./format')
const { MOST_BYTES, MOST_CAPACITY, bytesOf } = require('./layout')
const { BUSY, ENDED, IDLE, PUT, TAKE, USE, QueueMemory, memoryOf } = require('./memory')
const {
  Messages, MessagesAsync, ended, forever, readBatch, readBatchInTurn, valueInTurn, valueInUse, valueOf
} = require('./reading')
const {
  blocking, calling, clear, close, defer, endUse, idle, owing, owingOn, put, putBack, recover, take, takeMany
} = require('./steps')
const { isPutting, promised } = require('./waits')

const { MAX_SAFE_INTEGER } = Number
const OF_USES = ['timeout', 'retry', 'signal']

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
    if (block(this, 'put', 'putAsync()', putting, value, options) === ENDED) throw queueClosed('put')
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
    return promised('putAsync', PUT_ASYNC, this, value, options)
  }

  take (options) {
    const isDeep = assertStack()
    // To read it deep in the stack, it is taken as a batch.
    const found = block(this, 'take', 'takeAsync()', isDeep ? takingMany : taking, isDeep ? 1 : undefined, options)
    return isDeep ? readBatch(memoryOf(this), found, 'take', true, forever)[0] : valueOf(found, 'take')
  }

  tryTake () {
    const memory = memoryOf(this)
    const isDeep = assertStack()
    const found = isDeep ? owingOn(memory, takeMany, 1) : owingOn(memory, take)
    return isDeep ? readBatch(memory, found, 'tryTake', true)[0] : valueOf(found, 'tryTake')
  }

  takeAsync (options) {
    return promised('takeAsync', TAKE_ASYNC, this, undefined, options)
  }

  takeMany (max, options) {
    const isDeep = assertStack()
    const found = block(this, 'takeMany', 'takeManyAsync()', takingMany, max, options)
    return readBatch(memoryOf(this), found, 'takeMany', isDeep, forever)
  }

  tryTakeMany (max) {
    const memory = memoryOf(this)
    assertMax(max, 'tryTakeMany')
    const isDeep = assertStack()
    const found = owingOn(memory, takeMany, max)
    return readBatch(memory, found, 'tryTakeMany', isDeep)
  }

  takeManyAsync (max, options) {
    return promised('takeManyAsync', TAKE_MANY_ASYNC, this, max, options)
  }

  use (callback, options) {
    return promised('use', USE_ASYNC, this, callback, options)
  }

  useSync (callback, options) {
    assertWorker('useSync', 'use()')
    const memory = memoryOf(this)
    assertSynchronous(callback, 'useSync', 'use()')
    const limits = useOptions(options, 'useSync', false)
    const wait = calling(USE, take, observer.callHere(), limits, 'useSync')
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
    block(this, 'idle', 'onIdle()', awaitingIdle, undefined, options)
  }

  onIdle (options) {
    return promised('onIdle', ON_IDLE, this, undefined, options)
  }

  clear () {
    const found = owing(memoryOf(this), clear, undefined, isMainThread ? undefined : forever)
    return found === BUSY ? 0 : found
  }

  clearAsync () {
    return promised('clearAsync', CLEAR_ASYNC, this)
  }

  close (options) {
    const memory = memoryOf(this)
    owing(memory, close, onlyFlag(options, 'discard', 'close'))
  }

  [Symbol.iterator] () {
    assertWorker('iterating', 'for await')
    memoryOf(this)
    return new Messages(this)
  }

  [Symbol.asyncIterator] () {
    return this.messages()
  }

  messages (options) {
    return new MessagesAsync(this, memoryOf(this), signalOption(options, 'messages'))
  }
}

/** One call of a `use` callback: its argument, and the step by which the use ends. */
class Delivery {
  constructor (memory, lease, { retriesLast }) {
    const { attempt, deaths } = lease
    this.retriesLast = retriesLast
    this.end = endUse
    this.given = { attempt, deaths, putBack: (options) => { this.end = stepOf(onlyFlag(options, 'last', 'putBack')) } }
    memory.begin(lease)
  }

  /** Lets the message go back, since the callback has failed. */
  fails () {
    if (this.end === endUse) this.end = stepOf(this.retriesLast)
  }
}
bare(Delivery)

// ——— What a method waits for: the arguments are its memory, its own argument, its options and its name ———

const putting = (memory, value, limits, caller) => calling(PUT, put, messageOf(memory, value, caller), limits, caller)
const taking = (_, none, limits, caller) => calling(TAKE, take, none, limits, caller)
const awaitingIdle = (_, none, limits, caller) => calling(IDLE, idle, none, limits, caller)
const takingMany = (_, max, limits, caller) => {
  assertMax(max, caller)
  return calling(TAKE, takeMany, max, limits, caller)
}

/** Blocks for a method's step, and returns its answer. */
function block (queue, caller, twin, describe, argument, options) {
  assertWorker(caller, twin)
  const memory = memoryOf(queue)
  const wait = describe(memory, argument, waitOptions(options, caller, false), caller)
  assertStack()
  return blocking(memory, wait)
}

// ——— Forms that await: see `promised` of waits.js ———

const PUT_ASYNC = {
  describe: putting,
  finish (found) {
    if (found === ENDED) throw queueClosed('putAsync')
  }
}

const TAKE_ASYNC = {
  describe: taking,
  finish (lease) {
    if (lease === ENDED) return undefined
    try {
      return lease.value
    } catch (_) {
      // The call may have come from the depth of the stack.
      return valueInTurn(lease, 'takeAsync')
    }
  }
}

const TAKE_MANY_ASYNC = {
  isAsync: true,
  describe: takingMany,
  finish: (leases, memory) => readBatchInTurn(memory, leases, 'takeManyAsync')
}

const USE_ASYNC = {
  isAsync: true,
  optionsOf: useOptions,
  describe (_, callback, limits, caller, { call }) {
    assertFunction(callback, caller)
    return calling(USE, take, call === undefined ? 0 : call.place, limits, caller)
  },
  finish: (lease, memory, callback, { limits }) => lease !== ENDED && useInTurn(memory, lease, callback, limits)
}

const ON_IDLE = { describe: awaitingIdle, finish: () => undefined }

const CLEAR_ASYNC = {
  describe: (_, none, limits, caller) => calling(USE, clear, none, limits, caller),
  finish: (count) => count
}

/** Uses a message in use, and ends that. The first part runs at once. */
async function useInTurn (memory, lease, callback, limits) {
  let value
  try {
    value = lease.value
  } catch (_) {
    // As in `takeAsync`.
    value = await valueInTurn(lease, 'use', memory)
  }
  const delivery = new Delivery(memory, lease, limits)
  try {
    await callback(value, delivery.given)
  } catch (error) {
    delivery.fails()
    throw error
  } finally {
    await ended(memory, lease, delivery.end)
  }
  return true
}

const stepOf = (last) => last ? defer : putBack

// ——— Arguments: each is read once, and validated ———

/** Validates the options of `use`: as `waitOptions`, and whether a message whose callback fails is put back last. */
function useOptions (options, caller, signals = true) {
  assertOptions(options, OF_USES, caller, signals ? 3 : 2)
  const retry = option(options, 'retry', 'first')
  if (retry !== 'first' && retry !== 'last') {
    throw new TypeError(caller + ': retry must be "first" or "last", not ' + describe(retry))
  }
  const { timeout, signal } = waitLimits(options, caller, signals)
  return { timeout, signal, retriesLast: retry === 'last' }
}

const assertMax = (max, caller) => assertWithin(max, caller + ': max', 1, MAX_SAFE_INTEGER)

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
