'use strict'

// Waits until all messages of a Queue are done, and putters that are in use of it themselves.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { queueWith, waiting } = require('../fixtures/queue-messages')
const { FREED, HEAD, IDLED, IDLE_RETURNS, TAKE_LOCK } = require('../../lib/queue/layout')

const make = (options, ...messages) => (
  queueWith(Object.assign({ capacity: 2, messageSize: 64 }, options), ...messages))

/** Begins a use that ends when `end()` or `fail()` is called. */
async function used (queue, options) {
  const use = {}
  use.over = queue.use(() => new Promise((resolve, reject) => {
    use.end = resolve
    use.fail = () => reject(new Error('on purpose'))
  }), options).catch(() => {})
  await until(() => use.end !== undefined, 'it is in use')
  return use
}

/** In each form: `(t, queue)` returns a promise of the wait. */
const FORMS = {
  onIdle: (t, queue) => queue.onIdle(),
  idle: (t, queue) => startWorker(t, queue, ({ api, data }) => new api.Queue(data).idle()).done()
}

for (const form of Object.keys(FORMS)) {
  const idle = FORMS[form]

  test(`${form}: an unused queue is idle at once, and a closed one`, async t => {
    const queue = make()
    await idle(t, queue)
    queue.close()
    await idle(t, queue)
    assert.strictEqual(queue.waiters, 0)
  })

  test(`${form}: it waits for all that waits, is in use, has come back, or is put back last`, async t => {
    const queue = make({ capacity: 3 }, 'a', 'b')
    let isOver = false
    const wait = idle(t, queue).then(() => { isOver = true })
    await waiting(queue, 1)
    const first = await used(queue, { retry: 'last' })
    assert.strictEqual(queue.tryTake(), 'b')
    const second = async () => {
      await waiting(queue, 1)
      assert.deepStrictEqual([isOver, queue.length, queue.inUse], [false, 0, 1])
    }
    await second()
    first.fail()
    await first.over
    assert.deepStrictEqual([queue.length, queue.inUse], [1, 0])
    await waiting(queue, 1)
    const again = await used(queue)
    again.fail()
    await again.over
    await waiting(queue, 1)
    const last = await used(queue)
    await second()
    last.end()
    await last.over
    await wait
    assert.deepStrictEqual([queue.length, queue.inUse, queue.waiters], [0, 0, 0])
  })

  test(`${form}: it takes no notification of a putter, whose message it waits for`, async t => {
    const queue = make({ capacity: 1 }, 'a')
    const log = []
    const wait = idle(t, queue).then(() => { log.push('idle') })
    await waiting(queue, 1)
    const putter = startWorker(t, queue, ({ api, data }) => new api.Queue(data).put('b'))
    await waiting(queue, 2)
    queue.tryTake()
    await putter.done()
    await until(() => queue.length === 1, 'the message is in')
    const put = queue.putAsync('c').then(() => { log.push('c') })
    assert.strictEqual(queue.tryTake(), 'b')
    await put
    assert.strictEqual(queue.waiters, 1)
    assert.strictEqual(queue.tryTake(), 'c')
    await wait
    assert.deepStrictEqual(log, ['c', 'idle'])
  })

  for (const way of ['it gives up', 'its thread ends', 'the queue is closed']) {
    test(`${form}: a putter that waits keeps it waiting, until ${way}`, async t => {
      const queue = make({ capacity: 1 }, 'a')
      // Its promise is notified, and its event loop is busy.
      const worker = startWorker(t, queue, async ({ api, data, post, Atomics, words }) => {
        const queue = new api.Queue(data)
        const signal = { aborted: false, addEventListener (_, abort) { this.abort = abort }, removeEventListener () {} }
        const put = queue.putAsync('late', { signal }).catch(() => {})
        const state = words(1)
        post(state)
        while (Atomics.load(state, 0) === 0);
        if (Atomics.load(state, 0) === 1) {
          signal.aborted = true
          signal.abort()
        }
        await put
      })
      const state = await worker.next()
      let isOver = false
      const wait = idle(t, queue).then(() => { isOver = true })
      await waiting(queue, 2)
      assert.strictEqual(queue.tryTake(), 'a')
      // Another look finds the same.
      const { code } = await rejection(queue.onIdle({ timeout: 0 }))
      assert.strictEqual(code, 'ERR_TIMEOUT')
      assert.strictEqual(isOver, false)
      if (way === 'its thread ends') await worker.terminate()
      if (way === 'the queue is closed') queue.close()
      if (way !== 'its thread ends') Atomics.store(state, 0, way === 'it gives up' ? 1 : 2)
      await wait
      assert.strictEqual(queue.length, 0)
    })
  }

  test(`${form}: all that wait are told, and again by the next time`, async t => {
    const queue = make()
    for (let n = 0; n < 3; n++) {
      queue.tryPut(n)
      const waits = [1, 2, 3].map(() => idle(t, queue))
      await waiting(queue, 3)
      assert.strictEqual(queue.tryTake(), n)
      await Promise.all(waits)
    }
  })

  test(`${form}: what is cleared or discarded is done; a use that fails then is, too`, async t => {
    const queue = make({}, 'a', 'b')
    let wait = idle(t, queue)
    await waiting(queue, 1)
    assert.strictEqual(queue.clear(), 2)
    await wait
    queue.tryPut('a')
    queue.tryPut('b')
    wait = idle(t, queue)
    await waiting(queue, 1)
    const use = await used(queue, { retry: 'last' })
    queue.close({ discard: true })
    await waiting(queue, 1)
    use.fail()
    await Promise.all([use.over, wait])
    assert.ok(queue.ended)
  })

  test(`${form}: it hears of a queue that is closed and discards while another thread is inside a step`, async t => {
    const queue = make({}, 'a')
    const words = new Int32Array(queue.buffer)
    const wait = idle(t, queue)
    await waiting(queue, 1)
    // As if another thread were in it.
    Atomics.store(words, TAKE_LOCK, 1)
    queue.close({ discard: true })
    await until(() => api.waiterCount(words, TAKE_LOCK) === 1, 'it waits for the lock')
    Atomics.store(words, TAKE_LOCK, 0)
    api.notify(words, TAKE_LOCK, 1)
    await wait
    assert.ok(queue.ended)
  })

  test(`${form}: the one that hears of a death tells the others`, async t => {
    const queue = make({ capacity: 1 }, 'a')
    const words = new Int32Array(queue.buffer)
    const waits = [idle(t, queue), idle(t, queue)]
    await waiting(queue, 2)
    // As if a thread had ended just before it told of the message that it took.
    for (const word of [HEAD, FREED]) Atomics.add(words, word, 1)
    for (const word of [IDLED, IDLE_RETURNS]) {
      Atomics.add(words, word, 1)
      api.notify(words, word, 1)
    }
    await Promise.all(waits)
  })
}

test('onIdle: a timeout and a signal end the wait', async () => {
  const queue = make({ name: 'jobs' }, 'a')
  const late = await rejection(queue.onIdle({ timeout: 1 }))
  assert.deepStrictEqual([late.name, late.code, late.kind], ['TimeoutError', 'ERR_TIMEOUT', 'Queue'])
  assert.strictEqual(late.message, 'Timed out after 1 ms waiting for the end of all work of Queue "jobs"')
  const controller = new TinyController()
  const wait = rejection(queue.onIdle({ signal: controller.signal }))
  await waiting(queue, 1)
  const [entry] = api.snapshot().waiting.filter(({ kind }) => kind === 'Queue')
  assert.deepStrictEqual([entry.mode, entry.name, entry.blocked, entry.id], ['idle', 'jobs', false, queue.id])
  controller.abort()
  assert.strictEqual((await wait).name, 'AbortError')
  assert.strictEqual(queue.waiters, 0)
  assert.strictEqual((await rejection(queue.onIdle({ signal: controller.signal }))).name, 'AbortError')
  assert.throws(() => queue.idle(), { name: 'TypeError', message: 'idle would block the main thread: use onIdle()' })
  const wrong = await rejection(queue.onIdle({ timeOut: 1 }))
  assert.strictEqual(wrong.message, 'onIdle: options may have timeout and signal, not "timeOut"')
})

test('idle: a thread that has a message in use itself gets ERR_DEADLOCK', async t => {
  const queue = make({ name: 'jobs' }, 'a')
  const worker = startWorker(t, queue, ({ api, data }) => {
    const queue = new api.Queue(data)
    let found
    queue.useSync(() => {
      try {
        queue.idle()
      } catch ({ code, message }) {
        found = [code, message]
      }
    })
    queue.idle({ timeout: 0 })
    return found
  })
  const text = 'which this thread itself already has a message in use of'
  const [code, message] = await worker.done()
  assert.strictEqual(code, 'ERR_DEADLOCK')
  assert.strictEqual(message, `idle: would wait for the end of all work of Queue "jobs", ${text}`)
})

/** Uses a message in a thread, and puts another one from the callback, once `count` messages are in use. */
function putsInUse ({ api, data: [clone, count, options] }) {
  const queue = new api.Queue(clone)
  try {
    queue.useSync(() => {
      while (queue.inUse < count);
      queue.put('more', options)
    })
    return 'put'
  } catch ({ code, message }) {
    return { code, message }
  }
}

test('put: of threads that have all messages in use and put, exactly one gets ERR_DEADLOCK', async t => {
  for (const count of [2, 3]) {
    const queue = make({ capacity: count, name: 'jobs' }, ...Array.from({ length: count }, (_, n) => n))
    const workers = Array.from({ length: count }, () => startWorker(t, [queue, count], putsInUse))
    const ends = workers.map(worker => worker.done())
    const { code, message } = await Promise.race(ends)
    assert.strictEqual(code, 'ERR_DEADLOCK')
    const threads = /^put: would wait for room in Queue "jobs", of which this thread and threads? ([\d, ]+), blocked /
    assert.strictEqual(threads.exec(message)[1].split(', ').length, count - 1)
    assert.ok(message.endsWith(', blocked in put, have all messages in use'), message)
    await waiting(queue, count - 1)
    // What it has put back is taken: the others go on.
    for (let n = 1; n < count; n++) await queue.takeAsync()
    assert.deepStrictEqual((await Promise.all(ends)).filter(end => end === 'put').length, count - 1)
  }
})

for (const [why, options, consumers] of [
  ['a put has a timeout', { timeout: 2 ** 30 }, 2],
  ['a message is not', {}, 1]
]) {
  test(`put: no error while all messages are in use by threads that put, if ${why}`, async t => {
    const queue = make({ capacity: 2 }, 1, 2)
    const workers = Array.from({ length: consumers }, () => startWorker(t, [queue, consumers, options], putsInUse))
    await waiting(queue, consumers)
    if (consumers === 1) assert.strictEqual(queue.tryTake(), 2)
    else await Promise.all(workers.map(worker => worker.terminate()))
    if (consumers === 1) assert.strictEqual(await workers[0].done(), 'put')
    assert.deepStrictEqual([queue.length, queue.inUse], consumers === 1 ? [1, 0] : [2, 0])
  })
}
