'use strict'

// Several messages of a Queue at once: taken together, cleared, or discarded at the end; and iteration with a signal.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { TEXT, putAs, queueWith, waiting } = require('../fixtures/queue-messages')
const { TAKE_LOCK } = require('../../lib/queue/layout')

const make = (options, ...messages) => (
  queueWith(Object.assign({ capacity: 4, messageSize: 64 }, options), ...messages))
/** In each form: `(t, queue, max)` returns a promise of the messages. */
const FORMS = {
  tryTakeMany: async (t, queue, max) => queue.tryTakeMany(max),
  takeManyAsync: (t, queue, max) => queue.takeManyAsync(max),
  takeMany: async (t, queue, max) => {
    const worker = startWorker(t, [queue, max], ({ api, data: [clone, max] }) => {
      try {
        return { values: new api.Queue(clone).takeMany(max) }
      } catch ({ code, message }) {
        return { code, message }
      }
    })
    const { values, code, message } = await worker.done()
    if (values === undefined) throw Object.assign(new Error(message), { code })
    return values
  }
}

for (const form of Object.keys(FORMS)) {
  const take = FORMS[form]

  test(`${form}: takes what is there, at most so many, in their order, those that came back first`, async t => {
    const queue = make({ format: 'json' }, 'a', { b: 1 }, new Uint8Array([3]), 'd')
    await queue.use((_, { putBack }) => putBack())
    const first = await take(t, queue, 2)
    assert.deepStrictEqual(first, ['a', { b: 1 }])
    assert.ok(Array.isArray(first))
    assert.deepStrictEqual([queue.length, queue.inUse], [2, 0])
    assert.deepStrictEqual((await take(t, queue, 9)).map(String), ['3', 'd'])
    for (const n of [1, 2, 3, 4]) assert.strictEqual(queue.tryPut(n), true)
    assert.strictEqual(queue.tryPut(5), false)
    assert.deepStrictEqual(await take(t, queue, Number.MAX_SAFE_INTEGER), [1, 2, 3, 4])
    queue.close()
    assert.deepStrictEqual(await take(t, queue, 1), [])
  })

  test(`${form}: a batch ends before a message that cannot be read; it comes alone, as an error`, async t => {
    const queue = make({ capacity: 8 }, 'a', 'b')
    putAs(queue, TEXT, Buffer.from('{'))
    queue.tryPut('c')
    queue.tryPut('d')
    assert.deepStrictEqual(await take(t, queue, 8), ['a', 'b'])
    assert.deepStrictEqual([queue.length, queue.inUse], [3, 0])
    const { code, message } = await rejection(take(t, queue, 8))
    assert.strictEqual(code, 'ERR_QUEUE_UNREADABLE')
    assert.ok(message.startsWith(form), message)
    let attempts = 0
    await queue.use((value, { attempt }) => { attempts += attempt })
    assert.strictEqual(attempts, 1)
    assert.deepStrictEqual(await take(t, queue, 8), ['d'])
    assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
  })
}

test('a batch that waits gets the first message, or the end; its putters go on', async t => {
  const queue = make({ capacity: 2 })
  const waits = [queue.takeManyAsync(5), FORMS.takeMany(t, queue, 5)]
  await waiting(queue, 2)
  queue.tryPut(1)
  queue.tryPut(2)
  const got = await Promise.race(waits)
  assert.ok(got.length > 0)
  queue.close()
  assert.deepStrictEqual([].concat(...await Promise.all(waits)).sort(), [1, 2])
  const full = make({ capacity: 2 }, 'a', 'b')
  const puts = [1, 2].map(n => full.putAsync(n))
  assert.deepStrictEqual(full.tryTakeMany(5), ['a', 'b'])
  await Promise.all(puts)
  assert.deepStrictEqual(await full.takeManyAsync(5), [1, 2])
})

test('wrong numbers and options of a batch are named; a timeout and an abort take nothing', async () => {
  const queue = make({}, 'm')
  for (const [max, name] of [[0, 'RangeError'], [1.5, 'TypeError'], ['2', 'TypeError'], [Infinity, 'TypeError']]) {
    assert.throws(() => queue.tryTakeMany(max), { name, message: /^tryTakeMany: max must be/ })
    assert.ok(/^takeManyAsync: max must be/.test((await rejection(queue.takeManyAsync(max))).message))
  }
  assert.throws(() => queue.takeMany(1), { name: 'TypeError', message: /takeManyAsync/ })
  const controller = new TinyController()
  assert.strictEqual(queue.tryTake(), 'm')
  const aborted = queue.takeManyAsync(2, { signal: controller.signal })
  controller.abort()
  assert.strictEqual((await rejection(aborted)).name, 'AbortError')
  assert.strictEqual((await rejection(queue.takeManyAsync(2, { timeout: 1 }))).code, 'ERR_TIMEOUT')
  queue.tryPut('n')
  assert.deepStrictEqual(queue.tryTakeMany(2), ['n'])
})

test('while another thread is inside a step, a try takes nothing, and a promise waits its turn', async () => {
  const queue = make({}, 'a', 'b')
  const words = new Int32Array(queue.buffer)
  Atomics.store(words, TAKE_LOCK, 1)
  assert.deepStrictEqual([queue.tryTakeMany(2), queue.clear()], [[], 0])
  const takes = queue.takeManyAsync(1)
  const clears = queue.clearAsync()
  await until(() => api.waiterCount(words, TAKE_LOCK) === 2, 'both wait')
  Atomics.store(words, TAKE_LOCK, 0)
  api.notify(words, TAKE_LOCK, 2)
  assert.deepStrictEqual([await takes, await clears], [['a'], 1])
})

test('a batch from many threads: each message arrives once', async t => {
  const queue = make({ capacity: 64 })
  const consume = async ({ api, data: { clone, blocks } }) => {
    const queue = new api.Queue(clone)
    const got = []
    for (;;) {
      const some = blocks ? queue.takeMany(7) : await queue.takeManyAsync(5)
      if (some.length === 0) return got
      got.push(...some)
    }
  }
  const consumers = [true, false].map(blocks => startWorker(t, { clone: queue, blocks }, consume).done())
  const COUNT = 2000
  for (let n = 0; n < COUNT; n++) await queue.putAsync(n)
  queue.close()
  const all = await Promise.all(consumers)
  for (const got of all) assert.deepStrictEqual(got, got.slice().sort((a, b) => a - b))
  assert.strictEqual(new Set([].concat(...all)).size, COUNT)
  assert.ok(queue.ended)
})

// ——— Clearing ———

test('clear removes what waits and what came back, not what is in use; putters go on', async t => {
  const queue = make({}, 'used', 'back', 'c', 'd')
  let end
  const use = queue.use(() => new Promise(resolve => { end = resolve }))
  await queue.use((_, { putBack }) => putBack())
  const put = queue.putAsync('new')
  assert.deepStrictEqual([queue.length, queue.inUse], [3, 1])
  assert.strictEqual(queue.clear(), 3)
  await put
  assert.deepStrictEqual([queue.length, queue.inUse], [1, 1])
  assert.strictEqual(await queue.clearAsync(), 1)
  assert.strictEqual(await queue.clearAsync(), 0)
  end()
  await use
  assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
  for (const n of [1, 2, 3, 4]) assert.strictEqual(queue.tryPut(n), true)
  assert.strictEqual(await startWorker(t, queue, ({ api, data }) => new api.Queue(data).clear()).done(), 4)
  const taker = queue.takeAsync()
  queue.close()
  queue.clear()
  assert.strictEqual(await taker, undefined)
})

test('close({ discard }) ends the queue at once, but for what is in use, and that does not come back', async t => {
  for (const fails of [false, true]) {
    const queue = make({}, 'a', 'b', 'c')
    const seen = []
    let settle
    const use = queue.use(value => new Promise((resolve, reject) => {
      seen.push(value)
      settle = fails ? reject : resolve
    }))
    const puts = [1, 2, 3].map(() => queue.putAsync('more'))
    const refused = Promise.all(puts.slice(1).map(rejection))
    queue.close({ discard: true })
    assert.deepStrictEqual((await refused).map(({ code }) => code), ['ERR_QUEUE_CLOSED', 'ERR_QUEUE_CLOSED'])
    assert.deepStrictEqual([queue.closed, queue.ended, queue.length, queue.inUse], [true, false, 0, 1])
    const takers = [queue.takeAsync(), queue.use(() => seen.push('never')), queue.takeManyAsync(3)]
    settle(new Error('on purpose'))
    await rejection(use.then(() => { throw new Error('none') }))
    assert.deepStrictEqual(await Promise.all(takers), [undefined, false, []])
    assert.deepStrictEqual([seen, queue.ended, queue.length, queue.inUse], [['a'], true, 0, 0])
  }
  const queue = make({}, 'a')
  queue.close()
  assert.strictEqual(queue.ended, false)
  queue.close({ discard: false })
  assert.strictEqual(queue.length, 1)
  queue.close({ discard: true })
  assert.deepStrictEqual([queue.ended, queue.tryTake()], [true, undefined])
})

test('without a taker, too: what comes back to a queue that discards is gone', async t => {
  const queue = make({}, 'a', 'b')
  const victim = startWorker(t, queue, ({ api, data, post }) => new api.Queue(data).useSync(() => {
    post('used')
    process.exit()
  }))
  await victim.next()
  queue.close({ discard: true })
  await victim.exited
  assert.deepStrictEqual([queue.length, queue.inUse, queue.ended], [0, 0, true])
})

test('the options of close are checked', () => {
  const queue = make({}, 'm')
  assert.throws(() => queue.close({ discard: 1 }), { name: 'TypeError', message: /^close: discard must be a boolean/ })
  assert.throws(() => queue.close({ discards: true }), { name: 'TypeError', message: /^close: options may have disc/ })
  assert.throws(() => queue.close(null), { name: 'TypeError', message: /^close: options must be an object/ })
  assert.deepStrictEqual([queue.closed, queue.length], [false, 1])
})

// ——— Iterating ———

test('messages({ signal }) takes until the end, or until the signal aborts, and loses no message', async () => {
  const queue = make({}, 'a', 'b')
  const controller = new TinyController({ reason: 'enough' })
  const iterator = queue.messages({ signal: controller.signal })[Symbol.asyncIterator]()
  assert.deepStrictEqual(await iterator.next(), { done: false, value: 'a' })
  assert.deepStrictEqual(await iterator.next(), { done: false, value: 'b' })
  const [first, other] = [rejection(iterator.next()), queue.takeAsync()]
  controller.abort()
  assert.strictEqual(await first, 'enough')
  assert.strictEqual(await rejection(iterator.next()), 'enough')
  queue.tryPut('c')
  assert.strictEqual(await other, 'c')
  queue.close()
  assert.deepStrictEqual(await queue.messages().next(), { done: true, value: undefined })
  assert.throws(() => queue.messages({ signal: 1 }), { name: 'TypeError', message: /^messages: signal must be/ })
  assert.throws(() => queue.messages({ timeout: 1 }), { name: 'TypeError', message: /^messages: options may have si/ })
})
