'use strict'

// Queue: messages between threads. ends/queue-deaths.test.js ends its threads at any point.

const assert = require('assert')
const { test } = require('../harness')
const slowness = require('../fixtures/slowness')
const { api } = require('../subject')
const layout = require('../../lib/queue/layout')
const { MAJOR, startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { waiting } = require('../fixtures/queue-messages')

const { Queue } = api
const { FILLED, FREED, HEAD, EMPTIED, LOOKED, PUT_RETURNS, READY, RETURNS, ROOM, TAIL } = layout

const make = (options) => Queue.create(Object.assign({ capacity: 4, messageSize: 64 }, options))

/** Calls a method in a thread. */
const inThread = (t, queue, method, ...args) =>
  startWorker(t, [queue, method, args], ({ api, data: [queue, method, args] }) => new api.Queue(queue)[method](...args))

/** Returns a use of the next message, begun: `{ use, end, fail }`. */
async function inUse (queue) {
  const begun = {}
  begun.use = queue.use(() => new Promise((resolve, reject) => Object.assign(begun, { end: resolve, fail: reject })))
  await until(() => begun.end !== undefined, 'it is in use')
  return begun
}

/** Takes all that is there. */
function drain (queue) {
  const values = []
  for (let value = queue.tryTake(); value !== undefined; value = queue.tryTake()) values.push(value)
  return values
}

// ——— Messages ———

test('messages come out in the order in which they went in; a full queue takes none, an empty one gives none', () => {
  const queue = make()
  for (let round = 0; round < 5; round++) {
    for (let n = 0; n < 4; n++) assert.strictEqual(queue.tryPut(n), true)
    assert.strictEqual(queue.tryPut('more'), false)
    assert.strictEqual(queue.length, 4)
    assert.deepStrictEqual(drain(queue), [0, 1, 2, 3])
    assert.strictEqual(queue.length, 0)
  }
})

test('a value arrives as it was when it was put: of v8.serialize or JSON, and a Uint8Array as its bytes', async () => {
  const queue = make({ messageSize: 1000 })
  const json = new Queue(queue, { format: 'json' })
  for (const value of [0, -1.5, '', 'Grüße 🙂', null, true, [1, [2]], { a: { b: [] } }]) {
    for (const writer of [queue, json]) {
      assert.strictEqual(writer.tryPut(value), true)
      // A message says how it was written.
      assert.deepStrictEqual(queue.tryTake(), value)
    }
  }
  for (const value of [new Date(5), new Map([[1, { a: 2 }]]), /x/g]) {
    queue.tryPut(value)
    assert.deepStrictEqual(queue.tryTake(), value)
  }
  const bytes = new Uint8Array([1, 2, 3])
  const full = [0, 1, 2].map(() => queue.tryPut('first'))
  assert.deepStrictEqual(full, [true, true, true])
  queue.tryPut('last')
  const puts = [queue.putAsync(bytes), json.putAsync(bytes.subarray(1))]
  bytes.fill(9)
  assert.strictEqual(drain(queue).length, 4)
  await Promise.all(puts)
  const [one, other] = drain(queue)
  assert.deepStrictEqual([Array.from(one), Array.from(other)], [[1, 2, 3], [2, 3]])
  assert.strictEqual(Object.getPrototypeOf(one), Uint8Array.prototype)
})

test('what arrives is memory of its own: no bytes or views of a message are views of the queue or of a pool', () => {
  const queue = make({ capacity: 1, messageSize: 1000 })
  for (const value of [new Uint8Array([1, 2, 3]), { view: new Uint8Array([1, 2, 3]), other: Buffer.from('abc') }]) {
    queue.tryPut(value)
    const got = queue.tryTake()
    queue.tryPut({ view: new Uint8Array([7, 7, 7]), other: Buffer.from('xyz') })
    queue.tryTake()
    const view = got.view || got
    assert.deepStrictEqual(Array.from(view), [1, 2, 3])
    assert.ok(view.buffer instanceof ArrayBuffer)
    view.fill(8)
    queue.tryPut(new Uint8Array(3))
    assert.deepStrictEqual(Array.from(queue.tryTake()), [0, 0, 0])
  }
  queue.tryPut(new Uint8Array(3))
  assert.strictEqual(queue.tryTake().buffer.byteLength, 3)
})

test('what is no message is refused, and changes nothing', async () => {
  const queue = make({ messageSize: 10 })
  const before = Buffer.from(queue.buffer).toString('hex')
  const json = new Queue(queue, { format: 'json' })
  const refusals = [
    [queue, undefined, TypeError, /undefined/],
    [json, undefined, TypeError, /undefined/],
    [json, () => {}, TypeError, /a function/],
    [queue, new SharedArrayBuffer(4), TypeError, /SharedArrayBuffer/],
    [json, new SharedArrayBuffer(4), TypeError, /SharedArrayBuffer/],
    [queue, new api.AsyncLock(new SharedArrayBuffer(4)), TypeError, /lock/],
    [json, queue, TypeError, /lock/],
    [queue, new Uint8Array(11), RangeError, /11 bytes.*messageSize is 10/],
    [json, '12345678x', RangeError, /11 bytes.*messageSize is 10/]
  ]
  for (const [writer, value, Class, message] of refusals) {
    assert.throws(() => writer.tryPut(value), error => error instanceof Class && message.test(error.message))
    const error = await rejection(writer.putAsync(value))
    assert.ok(error instanceof Class && message.test(error.message), error)
  }
  assert.throws(() => queue.tryPut(() => {}))
  assert.strictEqual(Buffer.from(queue.buffer).toString('hex'), before)
  assert.strictEqual(queue.tryPut(new Uint8Array(10)), true)
})

test('sizeOf says how many bytes a value has, and byteLength how many a queue has', () => {
  assert.strictEqual(Queue.sizeOf(new Uint8Array(5)), 5)
  assert.strictEqual(Queue.sizeOf('é', 'json'), 4)
  const size = Queue.sizeOf({ a: 1 })
  assert.strictEqual(make({ messageSize: size }).tryPut({ a: 1 }), true)
  assert.throws(() => make({ messageSize: size - 1 }).tryPut({ a: 1 }), RangeError)
  assert.strictEqual(make().buffer.byteLength, Queue.byteLength(4, 64))
  assert.strictEqual(Queue.byteLength(1, 0) % 8, 0)
})

for (const [capacity, messageSize] of [[1, 0], [1, 1], [3, 7], [5, 13], [2, 4096]]) {
  test(`capacity ${capacity}, messageSize ${messageSize}: such messages pass, the bytes around the queue stay`, () => {
    const length = Queue.byteLength(capacity, messageSize)
    const buffer = new SharedArrayBuffer(length + 32)
    const bytes = new Uint8Array(buffer).fill(0xa5)
    bytes.fill(0, 16, 16 + length)
    const queue = new Queue(buffer, { capacity, messageSize, byteOffset: 16 })
    for (let round = 0; round < 7; round++) {
      const message = n => new Uint8Array(messageSize).fill(n + round)
      for (let n = 0; n < capacity; n++) assert.strictEqual(queue.tryPut(message(n)), true)
      assert.strictEqual(queue.tryPut(new Uint8Array(0)), false)
      for (let n = 0; n < capacity; n++) assert.deepStrictEqual(queue.tryTake(), message(n))
    }
    const around = [...bytes.subarray(0, 16), ...bytes.subarray(16 + length)]
    assert.ok(around.every(byte => byte === 0xa5))
  })
}

test('positions and events begin again at their ends', async () => {
  for (const capacity of [1, 3, 64]) {
    const buffer = new SharedArrayBuffer(Queue.byteLength(capacity, 16))
    const words = new Int32Array(buffer)
    const wrap = Math.floor(2 ** 29 / capacity) * capacity
    words[TAIL] = 2 * (wrap - 1)
    for (const index of [HEAD, FREED, ROOM, READY]) words[index] = wrap - 1
    for (const index of [RETURNS, FILLED, PUT_RETURNS, EMPTIED, LOOKED]) words[index] = 0x7fffffff
    const queue = new Queue(buffer, { capacity, messageSize: 16 })
    for (let n = 0; n < 3 * capacity + 3; n++) {
      const take = queue.takeAsync()
      await queue.putAsync(n)
      assert.strictEqual(await take, n)
    }
    queue.tryPut('again')
    await rejection(queue.use(() => { throw new Error('once') }))
    assert.strictEqual(queue.length, 1)
    for (let n = 1; n < capacity; n++) assert.strictEqual(queue.tryPut(n), true)
    assert.strictEqual(queue.tryPut('more'), false)
    assert.strictEqual(queue.tryTake(), 'again')
    assert.strictEqual(drain(queue).length, capacity - 1)
  }
})

// ——— The constructor ———

test('the numbers are the same in every thread: they are kept in the memory, and a clone carries them', () => {
  const queue = make({ name: 'jobs' })
  const clone = { kind: 'Queue', buffer: queue.buffer, byteOffset: 0, capacity: 4, messageSize: 64 }
  const other = new Queue(clone)
  assert.deepStrictEqual([other.capacity, other.messageSize, other.name, other.id], [4, 64, 'jobs', queue.id])
  queue.tryPut('seen')
  assert.strictEqual(other.tryTake(), 'seen')
  const refuses = (options, message) =>
    assert.throws(() => new Queue(queue.buffer, options), { name: 'RangeError', message })
  refuses({ capacity: 3, messageSize: 64 }, /capacity is 3.*with 4/)
  refuses({ capacity: 4, messageSize: 63 }, /messageSize is 63.*with 64/)
  assert.throws(() => new Queue(clone, { capacity: 5 }), { name: 'TypeError', message: /capacity is the number 5/ })
  assert.strictEqual(new Queue(clone, { format: 'json' }).capacity, 4)
})

test('wrong arguments are named', () => {
  const buffer = new SharedArrayBuffer(1000)
  const numbers = { capacity: 2, messageSize: 8 }
  const wrong = [
    [[buffer], TypeError, /capacity must be an integer, not undefined/],
    [[buffer, { capacity: 0, messageSize: 8 }], RangeError, /capacity must be from 1 to /],
    [[buffer, { capacity: 2 ** 28 + 1, messageSize: 8 }], RangeError, /capacity/],
    [[buffer, { capacity: 2, messageSize: -1 }], RangeError, /messageSize must be from 0 to /],
    [[buffer, { capacity: 2, messageSize: 1.5 }], TypeError, /messageSize must be an integer/],
    [[buffer, Object.assign({ byteOffset: 4 }, numbers)], RangeError, /byteOffset must be a multiple of 8/],
    [[new SharedArrayBuffer(100), numbers], RangeError, /buffer is too small: 100 bytes, /],
    [[buffer, Object.assign({ format: 'xml' }, numbers)], TypeError, /format must be "clone" or "json"/],
    [[buffer, Object.assign({ size: 1 }, numbers)], TypeError, /size/],
    [[undefined, numbers], TypeError, /buffer must be a SharedArrayBuffer/],
    [[{ kind: 'Latch', buffer, byteOffset: 0, count: 1 }, numbers], TypeError, /another class/]
  ]
  for (const [args, Class, message] of wrong) {
    assert.throws(() => new Queue(...args), { name: Class.name, message })
  }
  const { tryTake, close } = Queue.prototype
  assert.throws(() => tryTake.call(new api.AsyncLock()), { name: 'TypeError', message: /Queue/ })
  assert.throws(() => close.call({}), TypeError)
})

// ——— Waiting ———

test('main does not block: the error names the form that awaits', () => {
  const queue = make()
  const twins = { put: /putAsync/, take: /takeAsync/, useSync: /use\(\)/, [Symbol.iterator]: /for await/ }
  for (const method of Reflect.ownKeys(twins)) {
    assert.throws(() => queue[method](() => {}), { name: 'TypeError', message: twins[method] })
  }
})

test('a taker, blocked or awaiting, gets the next message; a putter, blocked or awaiting, the next room', async t => {
  const queue = make({ capacity: 1 })
  const taker = inThread(t, queue, 'take')
  await waiting(queue, 1)
  queue.tryPut('a')
  assert.strictEqual(await taker.done(), 'a')
  const take = queue.takeAsync()
  await queue.putAsync('b')
  assert.strictEqual(await take, 'b')
  queue.tryPut('c')
  const putter = inThread(t, queue, 'put', 'd')
  await waiting(queue, 1)
  assert.strictEqual(queue.tryTake(), 'c')
  await putter.done()
  const put = queue.putAsync('e')
  assert.strictEqual(queue.tryTake(), 'd')
  await put
  assert.deepStrictEqual(drain(queue), ['e'])
})

test('puts that are not awaited keep their order, and tryPut does not overtake them', async () => {
  const queue = make()
  const ends = []
  const puts = []
  for (let n = 0; n < 100; n++) puts.push(queue.putAsync(n).then(() => ends.push(n)))
  assert.strictEqual(queue.length, 4)
  assert.strictEqual(queue.tryTake(), 0)
  assert.strictEqual(queue.tryPut('before the others'), false)
  for (let n = 1; n < 100; n++) assert.strictEqual(await queue.takeAsync(), n)
  await Promise.all(puts)
  assert.deepStrictEqual(ends, Array.from({ length: 100 }, (_, n) => n))
  assert.strictEqual(queue.tryPut('free again'), true)
})

test('an abort in the middle of a line of puts, or a timeout, takes just that one out', async () => {
  const queue = make({ capacity: 1, name: 'jobs' })
  queue.tryPut('first')
  const [first, third] = [new TinyController(), new TinyController()]
  const options = [{ signal: first.signal }, { timeout: 5 }, { signal: third.signal }, undefined]
  const puts = options.map((each, n) => queue.putAsync(n + 1, each))
  first.abort()
  third.abort()
  assert.strictEqual((await rejection(puts[0])).name, 'AbortError')
  assert.strictEqual((await rejection(puts[2])).name, 'AbortError')
  const late = await rejection(puts[1])
  assert.deepStrictEqual([late.name, late.code, late.kind, late.id], ['TimeoutError', 'ERR_TIMEOUT', 'Queue', queue.id])
  assert.ok(/5 ms waiting for room in Queue "jobs"/.test(late.message), late.message)
  assert.strictEqual(queue.tryTake(), 'first')
  await puts[3]
  assert.deepStrictEqual(drain(queue), [4])
  assert.strictEqual(queue.waiters, 0)
})

test('takes that give up take nothing, and leave the notification to the next', async () => {
  const queue = make()
  const controller = new TinyController()
  const aborted = queue.takeAsync({ signal: controller.signal })
  const late = queue.takeAsync({ timeout: 1 })
  const next = queue.takeAsync()
  controller.abort()
  assert.strictEqual((await rejection(aborted)).name, 'AbortError')
  assert.strictEqual((await rejection(late)).code, 'ERR_TIMEOUT')
  queue.tryPut('kept')
  assert.strictEqual(await next, 'kept')
  assert.strictEqual((await rejection(queue.takeAsync({ signal: controller.signal }))).name, 'AbortError')
  assert.strictEqual((await rejection(queue.takeAsync({ timeout: 0 }))).code, 'ERR_TIMEOUT')
  queue.tryPut('there')
  assert.strictEqual(await queue.takeAsync({ timeout: 0 }), 'there')
})

test('a promise that was aborted, or whose time is over, is remembered no more', async () => {
  for (const [method, ...args] of [['putAsync', 'more'], ['takeAsync'], ['use', () => {}]]) {
    const queue = make({ capacity: 1 })
    if (method === 'putAsync') queue.tryPut('full')
    const wait = options => queue[method](...args, options)
    const controller = new TinyController()
    // Neither is over before both are known, however slow the machine is.
    const promises = [wait({ signal: controller.signal }), wait({ timeout: 10 * slowness })]
    const known = () => promises.map(promise => api.ref(promise))
    assert.deepStrictEqual(known(), [true, true])
    controller.abort()
    await Promise.all(promises.map(rejection))
    assert.deepStrictEqual(known(), [false, false], method)
  }
})

test('wrong options, an aborted signal and one that throws: nothing is put or taken, and nobody waits', async () => {
  const failure = new Error('no listeners here')
  const aborted = new TinyController({ reason: 'before' })
  aborted.abort()
  const cases = [
    [null, error => /options must be an object, not null/.test(error.message)],
    [{ timeOut: 1 }, error => error instanceof TypeError && /timeOut/.test(error.message)],
    [{ timeout: Symbol('s') }, error => error instanceof TypeError],
    [{ signal: {} }, error => error instanceof TypeError && /signal must be an AbortSignal/.test(error.message)],
    [{ get timeout () { throw failure } }, error => error === failure],
    [{ signal: aborted.signal }, error => error === 'before']
  ]
  const joining = { signal: { aborted: false, addEventListener () { throw failure } } }
  // With something to do at once, and without.
  for (const isFree of [true, false]) {
    const [full, empty] = [1, 1].map(capacity => make({ capacity }))
    full.tryPut('first')
    const [putTo, takeFrom] = isFree ? [empty, full] : [full, empty]
    const forms = [['putAsync', putTo, 'more'], ['takeAsync', takeFrom], ['use', takeFrom, () => {}]]
    for (const [form, queue, ...args] of forms) {
      for (const [options, isRight] of isFree ? cases : cases.concat([[joining, error => error === failure]])) {
        const error = await rejection(queue[form](...args, options))
        assert.ok(isRight(error), `${form}: ${error}`)
        assert.deepStrictEqual([full.length, empty.length, full.waiters, empty.waiters], [1, 0, 0, 0], form)
      }
    }
  }
})

test('blocking forms time out, too', async t => {
  const queue = make({ capacity: 1 })
  const worker = startWorker(t, queue, ({ api, data }) => {
    const queue = new api.Queue(data)
    const codes = []
    const attempt = run => { try { run(); codes.push('none') } catch (error) { codes.push(error.code) } }
    attempt(() => queue.take({ timeout: 5 }))
    attempt(() => queue.useSync(() => {}, { timeout: 0 }))
    queue.put(1)
    attempt(() => queue.put(2, { timeout: 5 }))
    return codes
  })
  assert.deepStrictEqual(await worker.done(), ['ERR_TIMEOUT', 'ERR_TIMEOUT', 'ERR_TIMEOUT'])
})

test('a busy event loop whose promise was notified keeps no blocked thread waiting', async t => {
  const queue = make()
  const pending = queue.takeAsync()
  const worker = inThread(t, queue, 'take')
  await waiting(queue, 2)
  queue.tryPut('m')
  const end = Date.now() + 20000
  while (queue.length > 0 && Date.now() < end);
  assert.strictEqual(queue.length, 0)
  queue.tryPut('n')
  assert.deepStrictEqual([await worker.done(), await pending], ['m', 'n'])
})

// ——— Using ———

test('the callback of use runs at once if a message is there', async () => {
  const queue = make()
  const seen = []
  queue.tryPut('there')
  const first = queue.use(value => { seen.push(value) })
  seen.push('returned')
  const second = queue.use(value => { seen.push(value) })
  queue.tryPut('awaited')
  seen.push('put')
  await Promise.all([first, second])
  assert.deepStrictEqual(seen, ['there', 'returned', 'put', 'awaited'])
})

test('a message is removed when its use has ended; an error, or putBack(), gives it back, and is counted', async () => {
  const queue = make()
  queue.tryPut('job')
  queue.tryPut('later')
  const seen = []
  const fail = await rejection(queue.use((value, { attempt }) => {
    seen.push([value, attempt, queue.inUse, queue.length])
    throw new Error('on purpose')
  }))
  assert.strictEqual(fail.message, 'on purpose')
  assert.strictEqual(await rejection(queue.use(async (value, { attempt }) => {
    seen.push([value, attempt])
    await undefined
    throw undefined // eslint-disable-line no-throw-literal
  })), undefined)
  assert.strictEqual(await queue.use((value, { attempt, putBack }) => {
    seen.push([value, attempt])
    putBack()
  }), true)
  assert.strictEqual(await queue.use((value, { attempt }) => { seen.push([value, attempt]) }), true)
  assert.deepStrictEqual(seen, [['job', 1, 1, 1], ['job', 2], ['job', 3], ['job', 4]])
  assert.deepStrictEqual([queue.inUse, queue.length], [0, 1])
  assert.strictEqual(queue.tryTake(), 'later')
})

test('what has come back is delivered before all others, the oldest first, to a waiting taker at once', async () => {
  const queue = make()
  for (const n of [1, 2, 3]) queue.tryPut(n)
  const uses = [await inUse(queue), await inUse(queue), await inUse(queue)]
  assert.deepStrictEqual([queue.inUse, queue.length], [3, 0])
  queue.tryPut(4)
  for (const n of [2, 0, 1]) uses[n].fail(new Error('back'))
  for (const { use } of uses) await rejection(use)
  assert.deepStrictEqual([queue.inUse, queue.length], [0, 4])
  assert.deepStrictEqual(drain(queue), [1, 2, 3, 4])
  queue.tryPut('again')
  const { use, fail } = await inUse(queue)
  const take = queue.takeAsync()
  fail(new Error('back'))
  await rejection(use)
  assert.strictEqual(await take, 'again')
})

test('a long use keeps its own slot only', async () => {
  const queue = make({ capacity: 2 })
  queue.tryPut('long')
  const { use, end } = await inUse(queue)
  for (let n = 0; n < 10; n++) {
    assert.strictEqual(queue.tryPut(n), true)
    assert.strictEqual(queue.tryPut('more'), false)
    assert.strictEqual(queue.tryTake(), n)
  }
  end()
  assert.strictEqual(await use, true)
  assert.deepStrictEqual([queue.tryPut(1), queue.tryPut(2), queue.tryPut(3)], [true, true, false])
})

test('useSync: the same, blocking; a promise is refused, and the message goes back', async t => {
  const queue = make()
  queue.tryPut('job')
  const worker = startWorker(t, queue, async ({ api, data }) => {
    const queue = new api.Queue(data)
    const seen = []
    const attempt = callback => {
      try {
        seen.push(queue.useSync(callback))
      } catch (error) {
        seen.push(`${error.name}: ${error.message}`)
      }
    }
    attempt(async () => { seen.push('begun') })
    attempt((value, { attempt }) => { seen.push(attempt); return Promise.resolve() })
    attempt((value, { attempt }) => { seen.push(attempt); throw new Error('on purpose') })
    attempt((value, { attempt, putBack }) => { seen.push(attempt); putBack() })
    attempt((value, { attempt }) => { seen.push(attempt, value) })
    queue.close()
    attempt(() => { seen.push('never') })
    return seen
  })
  const seen = await worker.done()
  const must = 'callback must not return a promise, which a blocked thread cannot await'
  const refused = `TypeError: useSync: ${must}: use use()`
  assert.deepStrictEqual(seen, [refused, 1, refused, 2, 'Error: on purpose', 3, true, 4, 'job', true, false])
})

test('an exception that nobody catches ends the worker and loses no message', async t => {
  const queue = make()
  queue.tryPut('job')
  const worker = startWorker(t, queue, ({ api, data }) => new api.Queue(data).useSync(value => value.unknown()))
  await rejection(worker.done())
  assert.strictEqual(await queue.takeAsync(), 'job')
})

// ——— The end ———

test('close: puts fail, what is in comes out, and then all takers are told', async t => {
  const queue = make({ capacity: 2 })
  queue.tryPut(1)
  queue.tryPut(2)
  const put = queue.putAsync(3)
  const putter = rejection(inThread(t, queue, 'put', 4).done())
  await waiting(queue, 2)
  queue.close()
  queue.close()
  assert.strictEqual((await rejection(put)).code, 'ERR_QUEUE_CLOSED')
  assert.strictEqual((await putter).code, 'ERR_QUEUE_CLOSED')
  assert.throws(() => queue.tryPut(5), { code: 'ERR_QUEUE_CLOSED' })
  assert.strictEqual((await rejection(queue.putAsync(5))).code, 'ERR_QUEUE_CLOSED')
  assert.deepStrictEqual([queue.closed, queue.ended, queue.length], [true, false, 2])
  assert.strictEqual(await queue.takeAsync(), 1)
  const { use, end } = await inUse(queue)
  const takers = [queue.takeAsync(), queue.use(() => {}), queue.takeAsync()]
  const blocked = inThread(t, queue, 'take')
  await waiting(queue, 4)
  assert.strictEqual(queue.ended, false)
  end()
  assert.strictEqual(await use, true)
  assert.deepStrictEqual(await Promise.all(takers), [undefined, false, undefined])
  assert.strictEqual(await blocked.done(), undefined)
  assert.deepStrictEqual([queue.ended, queue.tryTake(), queue.waiters], [true, undefined, 0])
})

test('for and for await take until the end', async t => {
  const queue = make({ messageSize: 100 })
  const worker = startWorker(t, queue, ({ api, data }) => Array.from(new api.Queue(data)))
  for (let n = 0; n < 50; n++) await queue.putAsync({ n })
  queue.close()
  assert.deepStrictEqual((await worker.done()).map(({ n }) => n), Array.from({ length: 50 }, (_, n) => n))

  const other = make({ messageSize: 100 })
  const putter = startWorker(t, other, ({ api, data }) => {
    const queue = new api.Queue(data)
    for (let n = 0; n < 50; n++) queue.put(n)
    queue.close()
  })
  const iterator = other[Symbol.asyncIterator]()
  const values = []
  for (let step = await iterator.next(); !step.done; step = await iterator.next()) values.push(step.value)
  assert.deepStrictEqual(values, Array.from({ length: 50 }, (_, n) => n))
  await putter.done()
})

// ——— Being seen ———

test('a thread that would wait for itself is told so', async t => {
  const queue = make({ capacity: 2, name: 'jobs' })
  const worker = startWorker(t, queue, async ({ api, data }) => {
    const queue = new api.Queue(data)
    const errors = []
    const attempt = run => {
      try {
        run()
      } catch ({ code, kind, id, message }) {
        errors.push(`${code} ${kind} ${id === queue.id} ${message.includes('Queue "jobs"')}`)
      }
    }
    queue.put(1)
    queue.put(2)
    queue.useSync(() => queue.useSync(() => attempt(() => queue.put(3))))
    queue.put(4)
    queue.close()
    queue.useSync(() => attempt(() => queue.take()))
    return errors
  })
  assert.deepStrictEqual(await worker.done(), Array(2).fill('ERR_DEADLOCK Queue true true'))
})

test('a snapshot has what is in use and who waits, by the queue, and nothing of its inside', async t => {
  const queue = make({ capacity: 2, name: 'jobs' })
  const shown = () => {
    const { held, waiting } = api.snapshot()
    assert.ok(held.concat(waiting).every(({ id }) => id === queue.id))
    const shown = ({ kind, mode, name, blocked }) => `${kind} ${mode} ${name} ${blocked}`
    return [held.map(shown).sort(), waiting.map(shown).sort()]
  }
  const takers = [queue.takeAsync(), queue.use(() => {})]
  const worker = inThread(t, queue, 'take')
  await waiting(queue, 3)
  assert.deepStrictEqual(shown(), [[], ['Queue take jobs false', 'Queue take jobs true', 'Queue use jobs false']])
  for (let n = 0; n < 3; n++) await queue.putAsync(n)
  await Promise.all(takers)
  await worker.done()
  queue.tryPut(1)
  queue.tryPut(2)
  const { use, end } = await inUse(queue)
  const putter = inThread(t, queue, 'put', 3)
  await waiting(queue, 1)
  assert.deepStrictEqual(shown(), [['Queue use jobs false'], ['Queue put jobs true']])
  end()
  await use
  await putter.done()
  assert.deepStrictEqual(shown(), [[], []])
})

test('the callback of use runs in the asynchronous context of its call', {
  skip: MAJOR < 14 && 'this Node has no AsyncLocalStorage that keeps to it'
}, async () => {
  const { AsyncLocalStorage } = require('async_hooks')
  const storage = new AsyncLocalStorage()
  const queue = make()
  const contexts = []
  const use = name => queue.use(() => { contexts.push([name, storage.getStore()]) })
  const uses = ['a', 'b'].map(name => storage.run(name, use, name))
  storage.run('putter', () => { queue.tryPut(1); queue.tryPut(2) })
  await Promise.all(uses)
  assert.deepStrictEqual(contexts, [['a', 'a'], ['b', 'b']])
})

test('producers and consumers of every kind: each message arrives once, those of one producer in order', async t => {
  const queue = make({ capacity: 8 })
  const COUNT = 300
  const produce = async ({ api, data: { clone, method, count } }) => {
    const queue = new api.Queue(clone, { format: method === 'put' ? 'json' : 'clone' })
    for (let n = 0; n < count; n++) {
      // tryPut says whether there was room.
      while (await queue[method]([method, n]) === false) await new Promise(resolve => setImmediate(resolve))
    }
  }
  const consume = async ({ api, data: { clone, method } }) => {
    const queue = new api.Queue(clone)
    const got = []
    for (;;) {
      const args = method.startsWith('use') ? [value => { got.push(value) }] : []
      const value = await queue[method](...args)
      if (value === undefined || value === false) return got
      if (value !== true) got.push(value)
    }
  }
  const dataOf = method => ({ clone: queue, method, count: COUNT })
  const start = (what, methods) => methods.map(method => startWorker(t, dataOf(method), what).done())
  const producing = start(produce, ['put', 'putAsync', 'tryPut'])
  const consuming = start(consume, ['take', 'takeAsync', 'useSync', 'use'])
  const own = []
  const take = async () => {
    for (let value = await queue.takeAsync(); value !== undefined; value = await queue.takeAsync()) own.push(value)
  }
  const taking = take()
  await Promise.all(producing)
  queue.close()
  const all = await Promise.all(consuming)
  await taking
  for (const got of all.concat([own])) {
    for (const method of ['put', 'putAsync', 'tryPut']) {
      const numbers = got.filter(([name]) => name === method).map(([, n]) => n)
      assert.deepStrictEqual(numbers, numbers.slice().sort((a, b) => a - b))
    }
  }
  const names = [].concat(own, ...all).map(([name, n]) => `${name} ${n}`)
  assert.strictEqual(names.length, 3 * COUNT)
  assert.strictEqual(new Set(names).size, 3 * COUNT)
  assert.ok(queue.ended)
})
