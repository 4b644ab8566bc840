'use strict'

// Iterators over the messages of a Queue, and how they end: no message is lost, and nothing goes on waiting.

const assert = require('assert')
const { createHook } = require('async_hooks')
const stream = require('stream')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { MAJOR, startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { needsChannels, subscribe } = require('../fixtures/channels')
const { CLONE, putAs, queueWith, waiting } = require('../fixtures/queue-messages')
const inside = require('../fixtures/inside')

const { memoryOf } = inside('queue/memory')
const { DEATHS, TAKE_LOCK, slotWords, slotsBegin } = inside('queue/layout')
const { QueueMemory } = inside('queue/memory')
const { endUse, owingOn, putBack, take } = inside('queue/steps')

const { Readable } = stream
const NO_RETURN = MAJOR < 16 && 'streams of this Node do not end an iterator of which a message is awaited'

const make = (options, ...messages) => queueWith(Object.assign({ capacity: 4, messageSize: 64 }, options), ...messages)

const DONE = { done: true, value: undefined }
const FAILURE = new Error('on purpose')

/** The ways in which a program ends an iteration. */
const ENDINGS = {
  return: async messages => { assert.deepStrictEqual(await messages.return('x'), { done: true, value: 'x' }) },
  throw: async messages => { assert.strictEqual(await rejection(messages.throw(FAILURE)), FAILURE) }
}

for (const how of Object.keys(ENDINGS)) {
  const end = ENDINGS[how]

  test(`${how}: calls of next that are pending are done, and wait no more; later ones are, too`, async () => {
    const queue = make()
    const messages = queue.messages()
    const pending = [messages.next(), messages.next(), messages.next()]
    const other = queue.takeAsync()
    assert.strictEqual(queue.waiters, 4)
    const ended = end(messages)
    assert.strictEqual(queue.waiters, 1)
    queue.tryPut('m')
    assert.strictEqual(await other, 'm')
    await ended
    assert.deepStrictEqual(await Promise.all(pending), [DONE, DONE, DONE])
    queue.tryPut('n')
    assert.deepStrictEqual(await messages.next(), DONE)
    await end(messages)
    assert.strictEqual(queue.tryTake(), 'n')
  })

  test(`${how}: a notification that next has not looked at goes to the next consumer`, async () => {
    const queue = make()
    const messages = queue.messages()
    const pending = messages.next()
    const other = queue.takeAsync()
    queue.tryPut('m')
    await end(messages)
    assert.strictEqual(await other, 'm')
    assert.deepStrictEqual(await pending, DONE)
    assert.strictEqual(queue.waiters, 0)
  })

  test(`${how}: messages that next has taken, but not delivered, come back, in order`, async () => {
    const COUNT = 200
    const queue = make({ capacity: COUNT }, ...Array.from({ length: COUNT }, (_, n) => n))
    const messages = queue.messages()
    const pending = Array.from({ length: COUNT }, () => messages.next())
    // The event loop has to turn for the others.
    assert.ok(queue.inUse > 0)
    const ended = end(messages)
    assert.strictEqual(queue.inUse, 0)
    const left = queue.length
    await ended
    const results = await Promise.all(pending)
    const got = results.filter(({ done }) => !done).map(({ value }) => value)
    assert.ok(left > 0 && left + got.length === COUNT, `${left} and ${got.length}`)
    while (queue.length > 0) got.push(queue.tryTake())
    assert.deepStrictEqual(got, Array.from({ length: COUNT }, (_, n) => n))
    queue.close()
    assert.ok(queue.ended)
  })
}

/** Calls back after so many microtasks. */
async function afterMicrotasks (count, callback) {
  for (; count > 0; count--) await undefined
  callback()
}

for (const [what, put, outcome] of [
  ['a message', queue => { queue.tryPut('m') }, { done: false, value: 'm' }],
  ['a message that no thread can read', queue => { putAs(queue, CLONE, [1, 2, 3]) }, 'ERR_QUEUE_UNREADABLE']
]) {
  test(`return soon after ${what} was removed, for which next awaited another thread: next has it`, async t => {
    const { remove } = QueueMemory.prototype
    t.after(() => { QueueMemory.prototype.remove = remove })
    for (let microtasks = 1; microtasks < 12; microtasks++) {
      const queue = make()
      const words = new Int32Array(queue.buffer)
      const messages = queue.messages()
      let next
      // Until one has taken its message, and not removed it yet.
      do {
        put(queue)
        next = messages.next().catch(({ code }) => code)
      } while (queue.inUse === 0)
      // As if another thread were inside a step.
      Atomics.store(words, TAKE_LOCK, 1)
      await until(() => api.waiterCount(words, TAKE_LOCK) === 1, 'the end of its use waits')
      let ended
      QueueMemory.prototype.remove = function (lease) {
        remove.call(this, lease)
        ended = afterMicrotasks(microtasks, () => messages.return())
      }
      Atomics.store(words, TAKE_LOCK, 0)
      api.notify(words, TAKE_LOCK, 1)
      assert.deepStrictEqual(await next, outcome, `${microtasks}`)
      QueueMemory.prototype.remove = remove
      await ended
      assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
    }
  })
}

test('to put back a message that has been removed changes nothing', () => {
  const queue = make({ capacity: 1 }, 'm')
  const words = new Int32Array(queue.buffer)
  const memory = memoryOf(queue)
  const lease = owingOn(memory, take, null)
  owingOn(memory, endUse, lease)
  queue.tryPut('next')
  words[slotsBegin(1) + slotWords(64) * lease.slot + DEATHS] = 7
  const before = words.slice()
  owingOn(memory, putBack, lease)
  assert.deepStrictEqual(words, before)
})

test('what came back from an iterator counts as no delivery, and as no death', async () => {
  const COUNT = 100
  const queue = make({ capacity: COUNT }, ...Array.from({ length: COUNT }, (_, n) => n))
  const messages = queue.messages()
  for (let n = 0; n < COUNT; n++) messages.next()
  assert.ok(queue.inUse > 0)
  messages.return()
  const seen = []
  await queue.use((_, { attempt, deaths }) => { seen.push([attempt, deaths]) })
  assert.deepStrictEqual(seen, [[1, 0]])
})

test('a loop that is left leaves the messages to others, whether they wait or come', async () => {
  const queue = make({}, 1, 2, 3)
  for await (const message of queue) {
    assert.strictEqual(message, 1)
    break
  }
  assert.deepStrictEqual([queue.tryTake(), queue.tryTake(), queue.inUse], [2, 3, 0])
  const messages = queue.messages()
  const other = queue.takeAsync()
  const loop = async () => {
    for await (const message of messages) if (message === 'last') break
  }
  const loops = [loop(), loop()]
  await waiting(queue, 3)
  for (const message of ['a', 'last']) await queue.putAsync(message)
  if (await other !== 'last') await Promise.all(loops)
  await messages.return()
  await Promise.all(loops)
  queue.tryPut('kept')
  assert.strictEqual(queue.tryTake(), 'kept')
})

test('what ends an iteration within a call of next ends that call, too', async () => {
  for (const at of ['aborted', 'addEventListener', 'aborted, while a message waits']) {
    const queue = make()
    const signal = {
      get aborted () {
        if (at !== 'addEventListener') this.end()
        return false
      },
      addEventListener () { if (at === 'addEventListener') this.end() },
      removeEventListener () {},
      end () {}
    }
    const messages = queue.messages({ signal })
    if (at.includes('while')) queue.tryPut('kept')
    signal.end = () => messages.return()
    assert.deepStrictEqual(await messages.next(), DONE, at)
    assert.strictEqual(queue.waiters, 0)
    if (!at.includes('while')) queue.tryPut('kept')
    assert.strictEqual(queue.tryTake(), 'kept', at)
  }
})

test('the same by a hook of async_hooks, while a message waits', async () => {
  const queue = make({}, 'kept')
  const messages = queue.messages()
  let calls = 0
  const hook = createHook({ init () { if (calls++ === 0) messages.return() } }).enable()
  const next = messages.next()
  hook.disable()
  assert.ok(calls > 0)
  assert.deepStrictEqual([await next, queue.tryTake()], [DONE, 'kept'])
})

test('an abort rejects the calls of next, and a message that comes then stays', async () => {
  const queue = make()
  const controller = new TinyController({ reason: 'stop' })
  const messages = queue.messages({ signal: controller.signal })
  const pending = [messages.next(), messages.next()]
  controller.abort()
  assert.deepStrictEqual(await Promise.all(pending.map(rejection)), ['stop', 'stop'])
  assert.strictEqual(controller.listeners.size, 0)
  queue.tryPut('kept')
  assert.strictEqual(await rejection(messages.next()), 'stop')
  await messages.return()
  assert.deepStrictEqual([await messages.next(), queue.tryTake()], [DONE, 'kept'])
})

test('a generator that delegates to an iterator passes on the error that it is given', async () => {
  const queue = make({}, 1)
  const generate = async function * () { yield * queue.messages() }
  const generator = generate()
  assert.deepStrictEqual(await generator.next(), { done: false, value: 1 })
  assert.strictEqual(await rejection(generator.throw(FAILURE)), FAILURE)
  assert.deepStrictEqual([await generator.next(), queue.waiters], [DONE, 0])
})

for (const [how, sourceOf] of [
  ['the queue', queue => queue],
  ['its messages', queue => queue.messages()],
  ['its messages, with a signal', queue => queue.messages({ signal: new TinyController().signal })]
]) {
  test(`a stream of ${how} that is destroyed while it waits takes no message`, { skip: NO_RETURN }, async () => {
    for (const error of [undefined, FAILURE]) {
      const queue = make()
      const readable = Readable.from(sourceOf(queue))
      readable.on('data', () => {}).on('error', () => {})
      await waiting(queue, 1)
      readable.destroy(error)
      await waiting(queue, 0)
      const next = queue.takeAsync()
      queue.tryPut('m')
      assert.strictEqual(await next, 'm')
    }
  })
}

test('a pipeline that fails while its source waits takes no message', { skip: NO_RETURN }, async () => {
  const queue = make()
  const sink = new stream.Writable({ objectMode: true, write (_, encoding, done) { done() } })
  const failed = new Promise(resolve => stream.pipeline(Readable.from(queue), sink, resolve))
  await waiting(queue, 1)
  sink.destroy(FAILURE)
  assert.strictEqual(await failed, FAILURE)
  await waiting(queue, 0)
  queue.tryPut('m')
  assert.strictEqual(await queue.takeAsync(), 'm')
})

test('the iterator of a thread ends with its loop', async t => {
  const queue = make({}, 1, 2, 3, 4)
  const worker = startWorker(t, queue, ({ api, data }) => {
    const queue = new api.Queue(data)
    const messages = queue[Symbol.iterator]()
    const said = []
    for (const message of messages) {
      said.push(message)
      break
    }
    said.push(messages.next().done, messages.return('x'))
    const [second] = queue
    const other = queue[Symbol.iterator]()
    try {
      other.throw('thrown')
    } catch (error) {
      said.push(error)
    }
    said.push(second, other.next().done, queue.take(), queue.length)
    return said
  })
  assert.deepStrictEqual(await worker.done(), [1, true, { done: true, value: 'x' }, 'thrown', 2, true, 3, 1])
})

test('ref and unref know each promise of next, and forget it', async () => {
  const queue = make()
  const messages = queue.messages()
  const pending = [messages.next(), messages.next()]
  for (const promise of pending) assert.deepStrictEqual([api.unref(promise), api.ref(promise)], [true, true])
  queue.tryPut('m')
  assert.deepStrictEqual(await pending[0], { done: false, value: 'm' })
  assert.deepStrictEqual(pending.map(promise => api.unref(promise)), [false, true])
  await messages.return()
  assert.strictEqual(api.unref(pending[1]), false)
})

test('whoever takes messages publishes no hold of them, whoever uses one does', needsChannels, async t => {
  const queue = make({}, 1, 2, 3, 4)
  const { messages } = subscribe(t, 'hold')
  assert.deepStrictEqual(queue.tryTakeMany(1), [1])
  assert.deepStrictEqual(await queue.takeManyAsync(1), [2])
  assert.deepStrictEqual(await queue.messages().next(), { done: false, value: 3 })
  assert.strictEqual(messages.length, 0)
  await queue.use(() => {})
  await until(() => messages.length > 0, 'a hold was published')
  assert.deepStrictEqual(messages.map(({ kind, mode }) => [kind, mode]), [['Queue', 'use']])
})
