'use strict'

// Values of a Queue that change, that cannot be written, or that a thread cannot read.

const assert = require('assert')
const v8 = require('v8')
const { test } = require('../harness')
const { api } = require('../subject')
const { MAJOR, NO_GROWABLE, startWorker, until } = require('../fixtures/queue-toolbox')
const { rejection } = require('../fixtures/lock-toolbox')
const { CLONE, TEXT, nested, putAs } = require('../fixtures/queue-messages')

const { Queue } = api

const NO_RESIZABLE = !('resize' in ArrayBuffer.prototype) && 'this Node has no ArrayBuffer that changes its size'
const make = (options) => Queue.create(Object.assign({ capacity: 4, messageSize: 64 }, options))

/** Makes a signal that does something when it is looked at. */
const signalThat = (act) => ({
  get aborted () {
    act()
    return false
  },
  addEventListener () {},
  removeEventListener () {}
})

const numbersOf = (bytes) => Array.from(bytes)

// ——— Arrays that change ———

test('an array that grows while its put waits is put as it was, and the other slots stay whole', {
  skip: NO_GROWABLE
}, async t => {
  const queue = make({ capacity: 2, messageSize: 8 })
  const buffer = new SharedArrayBuffer(8, { maxByteLength: 4096 })
  queue.tryPut('a')
  queue.tryPut('b')
  const worker = startWorker(t, [queue, buffer], ({ api, data: [clone, buffer] }) => {
    new api.Queue(clone).put(new Uint8Array(buffer).fill(1))
  })
  await until(() => queue.waiters === 1, 'it waits')
  buffer.grow(4096)
  new Uint8Array(buffer).fill(7)
  assert.strictEqual(queue.tryTake(), 'a')
  await worker.done()
  assert.strictEqual(queue.tryTake(), 'b')
  assert.deepStrictEqual(numbersOf(queue.tryTake()), new Array(8).fill(1))
  queue.tryPut('c')
  assert.strictEqual(queue.tryTake(), 'c')
})

test('an array that a getter of the call shrinks or detaches is refused, and one that has no bytes left, too', {
  skip: NO_RESIZABLE
}, async () => {
  const queue = make()
  const json = new Queue(queue, { format: 'json' })
  for (const writer of [queue, json]) {
    const changes = [
      buffer => buffer.resize(4),
      buffer => buffer.resize(0),
      buffer => { structuredClone(buffer, { transfer: [buffer] }) }
    ]
    for (const change of changes) {
      for (const length of [undefined, 8]) {
        const buffer = new ArrayBuffer(8, { maxByteLength: 16 })
        const array = new Uint8Array(buffer, 0, length)
        const signal = signalThat(() => change(buffer))
        const error = await rejection(writer.putAsync(array, { signal }))
        assert.ok(error instanceof TypeError && /shrunk or detached/.test(error.message), error)
        assert.strictEqual(queue.length, 0)
        // From then on it has no bytes, or these.
        if (array.length === 0 && (length === 8 || buffer.detached)) {
          assert.throws(() => writer.tryPut(array), { name: 'TypeError', message: /^tryPut: value.*detached or has/ })
          assert.throws(() => Queue.sizeOf(array), { name: 'TypeError', message: /^sizeOf: value/ })
        }
        queue.tryPut('next')
        assert.strictEqual(queue.tryTake(), 'next')
      }
    }
    const grows = new ArrayBuffer(8, { maxByteLength: 4096 })
    const signal = signalThat(() => grows.resize(4096))
    await writer.putAsync(new Uint8Array(grows), { signal })
    assert.strictEqual(queue.tryTake().length, 8)
  }
})

test('a detached array is refused; an empty one is a message', async t => {
  const queue = make()
  const { port1 } = new (require('worker_threads').MessageChannel)()
  const array = new Uint8Array(8)
  port1.postMessage(array, [array.buffer])
  assert.throws(() => queue.tryPut(array), { name: 'TypeError', message: /^tryPut: value.*detached/ })
  assert.strictEqual(queue.length, 0)
  assert.strictEqual(queue.tryPut(new Uint8Array(0)), true)
  assert.strictEqual(queue.tryTake().length, 0)
  port1.close()
})

test('a value is written at the call, also if the call blocks', async t => {
  const queue = make({ capacity: 1 })
  const bytes = new Uint8Array(new SharedArrayBuffer(4)).fill(1)
  queue.tryPut('first')
  const worker = startWorker(t, [queue, bytes], ({ api, data: [clone, bytes] }) => new api.Queue(clone).put(bytes))
  await until(() => queue.waiters === 1, 'it waits')
  bytes.fill(2)
  queue.tryTake()
  await worker.done()
  assert.deepStrictEqual(numbersOf(queue.tryTake()), [1, 1, 1, 1])
})

// ——— What cannot be written ———

test('what cannot be written is a TypeError that names the method; an error of the value stays as it is', async () => {
  const queue = make()
  const json = new Queue(queue, { format: 'json' })
  const before = Buffer.from(queue.buffer).toString('hex')
  const lock = new api.AsyncLock()
  const clone = { kind: 'AsyncLock', buffer: lock.buffer, byteOffset: 0 }
  const { port1 } = new (require('worker_threads').MessageChannel)()
  port1.close()
  const cases = [
    [queue, () => {}, /^tryPut: value must be one that v8\.serialize takes: .*could not be cloned/],
    [queue, port1, /^tryPut: value must be one that v8\.serialize takes: .*host object/],
    [queue, clone, /^tryPut: value must not be a lock or a SharedArrayBuffer/],
    [json, clone, /^tryPut: value must not be a lock or a SharedArrayBuffer/],
    [queue, { a: [Symbol('s')] }, /^tryPut: value must be/],
    [queue, { shared: new SharedArrayBuffer(4) }, /^tryPut: value.*SharedArrayBuffer/],
    [queue, { lock }, /^tryPut: value/],
    [json, { lock }, /^tryPut: value must not have a lock in it/],
    [json, [[queue]], /^tryPut: value must not have a lock in it/]
  ]
  for (const [writer, value, message] of cases) {
    assert.throws(() => writer.tryPut(value), { name: 'TypeError', message })
    const error = await rejection(writer.putAsync(value))
    assert.ok(error instanceof TypeError && /^putAsync: /.test(error.message), error)
  }
  const failure = new Error('of the getter')
  for (const writer of [queue, json]) {
    assert.throws(() => writer.tryPut({ get a () { throw failure } }), error => error === failure)
  }
  assert.strictEqual(Buffer.from(queue.buffer).toString('hex'), before)
  // Elsewhere a lock is text, as it was: a program may write it into a log.
  assert.strictEqual(JSON.parse(JSON.stringify({ lock })).lock.kind, 'AsyncLock')
  let inner
  const toJSON = () => {
    inner = rejection(json.putAsync({ lock }))
    return 'text'
  }
  json.tryPut({ toJSON })
  assert.ok(/^putAsync/.test((await inner).message))
  assert.strictEqual(queue.tryTake(), 'text')
})

test('a wrong format, or numbers, leave new memory as it is', () => {
  const numbers = { capacity: 2, messageSize: 8 }
  const buffer = new SharedArrayBuffer(Queue.byteLength(4, 64))
  for (const wrong of [{ format: 'xml' }, { format: null }, { capacity: 0 }, { messageSize: 1.5 }, { other: 1 }]) {
    assert.throws(() => new Queue(buffer, Object.assign({ name: 'wrong' }, numbers, wrong)))
    assert.throws(() => new Queue(buffer, Object.assign({}, numbers, { get format () { throw new TypeError('no') } })))
    assert.ok(new Int32Array(buffer).every(word => word === 0))
  }
  assert.throws(() => new Queue(buffer, null), { name: 'TypeError', message: /options must be an object, not null/ })
  const queue = new Queue(buffer, { capacity: 4, messageSize: 64 })
  assert.deepStrictEqual([queue.capacity, queue.name], [4, ''])
})

test('text beyond 2 GiB of a queue is text', {
  skip: MAJOR < 14 && 'this Node has no memory of more than 2 GiB'
}, () => {
  const numbers = { capacity: 9, messageSize: 2 ** 28 }
  let buffer
  try {
    buffer = new SharedArrayBuffer(Queue.byteLength(9, 2 ** 28))
  } catch (_) {
    return console.log('# no memory of more than 2 GiB here')
  }
  const queue = new Queue(buffer, Object.assign({ format: 'json' }, numbers))
  for (let n = 0; n < 9; n++) assert.strictEqual(queue.tryPut({ n, text: 'Grüße' }), true)
  for (let n = 0; n < 9; n++) assert.deepStrictEqual(queue.tryTake(), { n, text: 'Grüße' })
})

// ——— What cannot be read ———

const TOO_DEEP = nested(100000)
const large = (options) => make(Object.assign({ messageSize: 2 ** 20 }, options))

/** How deep an array may be nested that is read with the whole stack. */
let readable
function mostReadable () {
  const reads = depth => {
    try {
      return v8.deserialize(nested(depth)) !== undefined
    } catch (_) {
      return false
    }
  }
  for (readable = readable || 256; reads(2 * readable); readable *= 2);
  return readable
}

function assertUnreadable (error, method, attempt, format, bytes) {
  const { name, code, message, cause } = error
  assert.deepStrictEqual([name, code, error.attempt, error.format], ['Error', 'ERR_QUEUE_UNREADABLE', attempt, format])
  assert.ok(message.startsWith(`${method}: a message of ${bytes.length} bytes`), message)
  assert.ok(cause instanceof Error)
  assert.strictEqual(Object.getPrototypeOf(error.bytes), Uint8Array.prototype)
  assert.strictEqual(Buffer.compare(error.bytes, Buffer.from(bytes)), 0)
}

test('what cannot be read, though the stack is free, is removed, and the error has its bytes', async t => {
  const queue = large()
  const text = Buffer.from('{"Grüße')
  const broken = [[CLONE, 'clone', TOO_DEEP], [TEXT, 'json', text], [CLONE, 'clone', Buffer.from([1])]]
  // A format of another version; v8.deserialize could read these bytes.
  broken.push([3, 'unknown', v8.serialize('a text')])
  for (const [format, name, bytes] of broken) {
    const forms = {
      tryTake: () => queue.tryTake(),
      takeAsync: () => queue.takeAsync(),
      use: () => queue.use(() => assert.fail('it is called'))
    }
    for (const method of Object.keys(forms)) {
      putAs(queue, format, bytes)
      queue.tryPut('next')
      assertUnreadable(await rejection((async () => forms[method]())()), method, 1, name, bytes)
      assert.deepStrictEqual([queue.length, queue.inUse], [1, 0])
      assert.strictEqual(queue.tryTake(), 'next')
    }
    putAs(queue, format, bytes)
    putAs(queue, format, bytes)
    queue.tryPut('next')
    const worker = startWorker(t, queue, ({ api, data }) => {
      const queue = new api.Queue(data)
      return [() => queue.take(), () => queue.useSync(() => {})].map(call => {
        try {
          return call()
        } catch (error) {
          const { name, code, attempt, format, bytes, message, cause } = error
          return { name, code, attempt, format, bytes, message, cause: cause instanceof Error }
        }
      })
    })
    const errors = await worker.done()
    errors.forEach((error, n) => {
      const method = ['take', 'useSync'][n]
      error.cause = error.cause && new Error('there')
      assertUnreadable(error, method, 1, name, bytes)
    })
    assert.strictEqual(queue.tryTake(), 'next')
  }
  // A consumer that waits gets the error, too, and the count of deliveries is that of uses.
  const waiting = rejection(queue.takeAsync())
  putAs(queue, CLONE, TOO_DEEP)
  assertUnreadable(await waiting, 'takeAsync', 1, 'clone', TOO_DEEP)
  queue.close()
  assert.strictEqual(queue.ended, true)
})

/** Calls `attempt` deep in the stack: where little more than so many kilobytes are free. */
function deepDown (attempt, kilobytes) {
  const isFree = () => {
    try {
      Reflect.apply(() => {}, undefined, new Array(128 * (kilobytes + 4)))
      return true
    } catch (_) {
      return false
    }
  }
  const padding = new Array(500).fill(0)
  const down = () => isFree() ? down(...padding) : attempt()
  return down()
}
/** Less than half of a stack, and enough for a call; not for the message. */
const DEEP = 100

test('a call from the depth of the stack that cannot read a message changes nothing', async t => {
  const queue = large()
  const bytes = nested(Math.floor(mostReadable() / 2))
  putAs(queue, CLONE, bytes)
  queue.tryPut('next')
  for (let n = 0; n < 2; n++) {
    for (const call of [() => queue.tryTake(), () => queue.tryTake()]) {
      assert.throws(() => deepDown(call, DEEP), RangeError)
      assert.deepStrictEqual([queue.length, queue.inUse], [2, 0])
    }
  }
  const got = []
  // Promises read again in a turn of their own.
  const use = (value, { attempt, putBack }) => {
    got.push(attempt, depthOf(value))
    putBack()
  }
  assert.strictEqual(await deepDown(() => queue.use(use), DEEP), true)
  assert.deepStrictEqual(got, [1, Math.floor(mostReadable() / 2)])
  assert.strictEqual(depthOf(await deepDown(() => queue.takeAsync(), DEEP)), got[1])
  assert.strictEqual(deepDown(() => queue.tryTake(), DEEP), 'next')
  assert.deepStrictEqual([queue.length, queue.inUse], [0, 0])
})

const depthOf = (value) => {
  let depth = 0
  for (; value.length > 0; value = value[0]) depth++
  return depth
}

test('in a worker, too: take and useSync', async t => {
  const queue = large()
  putAs(queue, CLONE, nested(Math.floor(mostReadable() / 2)))
  queue.tryPut('next')
  const worker = startWorker(t, [queue, String(deepDown), DEEP], async ({ api, data, require }) => {
    const queue = new api.Queue(data[0])
    const deepDown = require('./queue-toolbox').compile(data[1])
    const outcomes = []
    const attempt = call => {
      try {
        outcomes.push(deepDown(call, data[2]))
      } catch (error) {
        outcomes.push(error instanceof RangeError && error.code === undefined)
      }
    }
    attempt(() => queue.take())
    attempt(() => queue.useSync(() => {}))
    outcomes.push(queue.length, queue.inUse)
    queue.useSync((_, { attempt }) => { outcomes.push(attempt) })
    attempt(() => queue.take())
    return outcomes
  })
  assert.deepStrictEqual(await worker.done(), [true, true, 2, 0, 1, 'next'])
})
