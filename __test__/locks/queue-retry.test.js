'use strict'

// Messages of a Queue that are put back behind all that wait, and the count of deliveries that a death has ended.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { rejection } = require('../fixtures/lock-toolbox')
const { queueWith } = require('../fixtures/queue-messages')
const { TAKE_LOCK } = require('../../lib/queue/layout')

const make = (options, ...messages) => (
  queueWith(Object.assign({ capacity: 4, messageSize: 64 }, options), ...messages))
const fail = () => { throw new Error('on purpose') }
const putLast = (_, { putBack }) => putBack({ last: true })

/** Takes all: the values in their order. */
function drained (queue) {
  const values = []
  for (let value = queue.tryTake(); value !== undefined; value = queue.tryTake()) values.push(value)
  return values
}

/** In each form: `(t, queue)` returns a promise of the end of a use whose message is put back last. */
const FORMS = {
  'use, putBack': (t, queue) => queue.use(putLast),
  'use, retry': (t, queue) => rejection(queue.use(fail, { retry: 'last' })),
  'useSync, putBack': (t, queue) => startWorker(t, queue, ({ api, data }) => (
    new api.Queue(data).useSync((_, { putBack }) => putBack({ last: true })))).done(),
  'useSync, retry': (t, queue) => startWorker(t, queue, ({ api, data }) => {
    try {
      new api.Queue(data).useSync(() => { throw new Error('on purpose') }, { retry: 'last' })
    } catch (_) {}
  }).done()
}

for (const form of Object.keys(FORMS)) {
  const putBackLast = FORMS[form]

  test(`${form}: it comes behind all that wait, and before those that are put later`, async t => {
    const queue = make({}, 'a', 'b')
    await putBackLast(t, queue)
    assert.deepStrictEqual([queue.length, queue.inUse], [2, 0])
    queue.tryPut('c')
    assert.deepStrictEqual(drained(queue), ['b', 'a', 'c'])
    // Alone it comes again at once.
    queue.tryPut('d')
    await putBackLast(t, queue)
    assert.deepStrictEqual(queue.tryTakeMany(2), ['d'])
    assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
  })

  test(`${form}: it needs no room, in a full and in a closed queue, which has not ended while it is there`, async t => {
    const queue = make({ capacity: 2 }, 'a', 'b')
    await putBackLast(t, queue)
    assert.strictEqual(queue.tryPut('c'), false)
    queue.close()
    await putBackLast(t, queue)
    assert.strictEqual(queue.ended, false)
    assert.strictEqual(await queue.takeAsync(), 'a')
    assert.strictEqual(queue.ended, false)
    await putBackLast(t, queue)
    assert.strictEqual(queue.ended, false)
    assert.strictEqual(await queue.takeAsync(), 'b')
    assert.strictEqual(queue.ended, true)
    assert.strictEqual(await queue.takeAsync(), undefined)
  })

  test(`${form}: takers that wait get it`, async t => {
    const queue = make({}, 'a')
    let end
    const use = queue.use((_, { putBack }) => new Promise(resolve => { end = () => resolve(putBack({ last: true })) }))
    const worker = startWorker(t, queue, ({ api, data }) => new api.Queue(data).take())
    await until(() => queue.waiters === 1, 'it waits')
    end()
    assert.strictEqual(await worker.done(), 'a')
    await use
  })
}

test('a message that always fails keeps no other waiting, and their order is kept, however often', async () => {
  const queue = make({ capacity: 3, format: 'json' }, 'bad', 'worse', 'good')
  const log = []
  for (let n = 0; n < 9; n++) {
    const callback = value => value === 'good' ? log.push(value) : fail(log.push(value))
    await queue.use(callback, { retry: 'last' }).catch(() => {})
    if (n === 4) queue.tryPut('good')
  }
  assert.deepStrictEqual(log, ['bad', 'worse', 'good', 'bad', 'worse', 'bad', 'worse', 'good', 'bad'])
  assert.strictEqual(queue.length, 2)
})

test('what comes back first is before what is put back last, whatever was put in between', async () => {
  const queue = make({ capacity: 6 }, 'a', 'b', 'c', 'd')
  await queue.use(putLast)
  await queue.use(putLast)
  await queue.use((_, { putBack }) => putBack())
  queue.tryPut('e')
  assert.deepStrictEqual(queue.tryTakeMany(2), ['c', 'd'])
  await queue.use(putLast)
  assert.deepStrictEqual(drained(queue), ['b', 'e', 'a'])
})

test('a batch has them in their order, and the rest of a batch that cannot be read stays', async () => {
  const queue = make({}, 'a', 'b', 'c')
  await queue.use(putLast)
  assert.deepStrictEqual(await queue.takeManyAsync(8), ['b', 'c', 'a'])
  assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
})

test('clear removes them, and so does a close that discards; what fails then is gone', async () => {
  const queue = make({}, 'a', 'b')
  await queue.use(putLast)
  assert.strictEqual(queue.clear(), 2)
  queue.tryPut('c')
  await queue.use(putLast)
  let end
  queue.tryPut('d')
  let use
  await new Promise(hasBegun => {
    use = queue.use((_, { putBack }) => new Promise(resolve => {
      end = () => resolve(putBack({ last: true }))
      hasBegun()
    }))
  })
  queue.close({ discard: true })
  assert.deepStrictEqual([queue.length, queue.inUse, queue.ended], [0, 1, false])
  end()
  await use
  assert.deepStrictEqual([queue.length, queue.inUse, queue.ended], [0, 0, true])
})

test('slots and positions stay whole, however many messages pass one that is put back last each time', async () => {
  const queue = make({ capacity: 2, messageSize: 8, format: 'json' }, -1)
  for (let n = 0; n < 1000; n++) {
    assert.strictEqual(queue.tryPut(n), true)
    assert.strictEqual(queue.tryPut('full'), false)
    await queue.use(putLast)
    assert.strictEqual(queue.tryTake(), n)
  }
  assert.deepStrictEqual(drained(queue), [-1])
  for (const n of [1, 2]) assert.strictEqual(queue.tryPut(n), true)
})

test('a use whose message goes last waits while another thread is inside a step', async () => {
  const queue = make({}, 'a', 'b')
  const words = new Int32Array(queue.buffer)
  let isOver = false
  const use = queue.use((_, { putBack }) => {
    putBack({ last: true })
    // As if another thread were in it.
    Atomics.store(words, TAKE_LOCK, 1)
  }).then(() => { isOver = true })
  await until(() => api.waiterCount(words, TAKE_LOCK) === 1, 'it waits for the lock')
  assert.strictEqual(isOver, false)
  Atomics.store(words, TAKE_LOCK, 0)
  api.notify(words, TAKE_LOCK, 1)
  await use
  assert.deepStrictEqual(drained(queue), ['b', 'a'])
})

test('deaths counts deliveries that the end of a thread has ended in the callback; attempt counts all', async t => {
  const queue = make({ capacity: 1 }, 'a')
  const seen = []
  const look = (end) => queue.use((_, { attempt, deaths, putBack }) => {
    seen.push([attempt, deaths])
    end(putBack)
  }).catch(() => {})
  const die = async (way) => {
    const worker = startWorker(t, [queue, way], ({ api, data: [clone, way] }) => {
      const queue = new api.Queue(clone)
      if (way === 'use') return queue.use(() => process.exit())
      return queue.useSync(() => process.exit())
    })
    await worker.done().catch(() => {})
    await worker.exited
  }
  await look(fail)
  await die('useSync')
  await look(putBack => putBack())
  await die('use')
  await look(putBack => putBack({ last: true }))
  await die('useSync')
  await look(() => {})
  assert.deepStrictEqual(seen, [[1, 0], [3, 1], [5, 2], [7, 3]])
  // The next message in that slot begins anew.
  queue.tryPut('b')
  await look(() => {})
  assert.deepStrictEqual(seen[4], [1, 0])
})

test('the last call of putBack counts, also if the callback fails then; wrong options throw', async () => {
  const queue = make({}, 'a', 'b')
  await queue.use((_, { putBack }) => {
    putBack({ last: true })
    putBack()
  })
  await rejection(queue.use((_, { putBack }) => {
    putBack()
    putBack({ last: true })
    fail()
  }))
  assert.deepStrictEqual(drained(queue), ['b', 'a'])
  queue.tryPut('c')
  for (const [options, message] of [
    [{ last: 1 }, 'putBack: last must be a boolean, not the number 1'],
    [{ first: true }, 'putBack: options may have last, not "first"'],
    [null, 'putBack: options must be an object, not null']
  ]) {
    const error = await rejection(queue.use((_, { putBack }) => putBack(options)))
    assert.deepStrictEqual([error.name, error.message], ['TypeError', message])
  }
  for (const [options, message] of [
    [{ retry: true }, 'use: retry must be "first" or "last", not true'],
    [{ retries: 3 }, 'use: options may have timeout, retry and signal, not "retries"']
  ]) {
    const error = await rejection(queue.use(() => {}, options))
    assert.deepStrictEqual([error.name, error.message], ['TypeError', message])
  }
  assert.strictEqual(queue.length, 1)
})
