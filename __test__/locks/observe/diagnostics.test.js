'use strict'

// What `diagnostics_channel` is told, on a Node that has it.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { TinyController, memory, untilWaiters } = require('../../fixtures/lock-toolbox')
const { runChild, startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Latch, Queue, RwLock, Semaphore, locks, snapshot } = api

let diagnostics
try {
  diagnostics = require('diagnostics_channel')
} catch (_) {}
const options = { skip: diagnostics === undefined && 'this Node has no diagnostics_channel' }

/** What `noted` gives of the messages of a channel, from now to the end of the test. */
function subscribe (t, name, noted = message => message) {
  const channel = diagnostics.channel('atomics-waitasync:' + name)
  const messages = []
  const listener = (message, from) => {
    assert.strictEqual(from, 'atomics-waitasync:' + name)
    messages.push(noted(message))
  }
  channel.subscribe(listener)
  t.after(() => { channel.unsubscribe(listener) })
  return messages
}

const facts = ({ kind, mode, name, outcome }) => ({ kind, mode, name, outcome })

test('a promise that waited is told of with its outcome; one that did not is not', options, async t => {
  const messages = subscribe(t, 'wait')
  const sab = memory(16)
  const lock = new AsyncLock(sab)
  const token = lock.tryLock()
  const { id } = snapshot().held[0]
  const next = lock.lockAsync()
  assert.deepStrictEqual(messages, [])
  token.unlock()
  ;(await next).unlock()
  ;(await lock.lockAsync()).unlock()
  assert.deepStrictEqual(messages.map(facts), [{ kind: 'AsyncLock', mode: 'exclusive', name: undefined, outcome: 'acquired' }])
  assert.deepStrictEqual(Object.keys(messages[0]), ['kind', 'mode', 'name', 'id', 'milliseconds', 'outcome'])
  assert.strictEqual(messages[0].id, id)
  assert.ok(messages[0].milliseconds >= 0)

  const rw = new RwLock(sab, { byteOffset: 4 })
  const writing = rw.tryLock()
  await assert.rejects(rw.lockSharedAsync({ timeout: 10 }), { name: 'TimeoutError' })
  const { signal, abort } = new TinyController()
  const aborted = rw.executeLocked(() => {}, { signal })
  abort()
  await assert.rejects(aborted)
  writing.unlock()
  const semaphore = new Semaphore(sab, { byteOffset: 8 })
  const used = semaphore.use(1, () => {})
  semaphore.release()
  await used
  assert.deepStrictEqual(messages.slice(1).map(facts), [
    { kind: 'RwLock', mode: 'shared', name: undefined, outcome: 'timed-out' },
    { kind: 'RwLock', mode: 'exclusive', name: undefined, outcome: 'aborted' },
    { kind: 'Semaphore', mode: 'permits', name: undefined, outcome: 'acquired' }
  ])
  assert.ok(messages[1].milliseconds >= 10, messages[1].milliseconds)
})

test('waits for a Queue are told of, by promises and by threads, each once', options, async t => {
  const messages = subscribe(t, 'wait')
  const queue = Queue.create({ capacity: 1, messageSize: 16, name: 'jobs' })
  // The time until the promise waits counts, too, but is not told.
  const late = { timeout: 50 }
  await queue.putAsync(1)
  await assert.rejects(queue.putAsync(2, { timeout: 0 }), { name: 'TimeoutError' })
  await assert.rejects(queue.putAsync(2, late), { name: 'TimeoutError' })
  const puts = [3, 4].map(n => queue.putAsync(n))
  assert.strictEqual(queue.tryTake(), 1)
  for (const [n, put] of [[3, puts[0]], [4, puts[1]]]) {
    await put
    assert.strictEqual(queue.tryTake(), n)
  }
  const { signal, abort } = new TinyController()
  const aborted = queue.takeAsync({ signal })
  abort()
  await assert.rejects(aborted)
  const uses = [1, 2].map(() => queue.use(() => {}))
  await queue.putAsync(5)
  await uses[0]
  queue.close()
  await uses[1]
  const expected = [['put', 'timed-out'], ['put', 'acquired'], ['put', 'acquired'], ['take', 'aborted'], ['use', 'acquired'], ['use', 'ended']]
  assert.deepStrictEqual(messages.map(facts), expected.map(([mode, outcome]) => ({ kind: 'Queue', mode, name: 'jobs', outcome })))
  assert.ok(messages.every(({ id }) => id === queue.id) && messages[0].milliseconds >= 10, JSON.stringify(messages))

  const blocking = Queue.create({ capacity: 1, messageSize: 16 })
  const worker = startWorker(t, ({ api, data, require }) => {
    const messages = []
    require('diagnostics_channel').channel('atomics-waitasync:wait').subscribe(message => messages.push(message))
    const queue = new api.Queue(data)
    for (const timeout of [0, 10]) try { queue.take({ timeout }) } catch (_) {}
    queue.put('taken')
    queue.put('used')
    for (let n = 0; n < 2; n++) queue.useSync(() => {})
    return messages.map(({ mode, outcome, id }) => [mode, outcome, id])
  }, blocking)
  await until(() => blocking.length === 1 && blocking.waiters === 1, 'it waits for room')
  assert.strictEqual(await blocking.takeAsync(), 'taken')
  await until(() => blocking.ended || (blocking.length === 0 && blocking.waiters === 1), 'it waits for a message')
  blocking.close()
  const { id } = blocking
  assert.deepStrictEqual(await worker.done(), [['take', 'timed-out', id], ['put', 'acquired', id], ['use', 'ended', id]])
})

test('a thread that blocked tells of it itself', options, async t => {
  const lock = new AsyncLock(memory(4))
  const token = lock.tryLock()
  const worker = startWorker(t, ({ api, data: sab, post, require }) => {
    const messages = []
    require('diagnostics_channel').channel('atomics-waitasync:wait').subscribe(message => messages.push(message))
    const lock = new api.AsyncLock(sab)
    if (lock.lockIfAvailable(30) !== null) throw new Error('it was held')
    post('late')
    lock.lock().unlock()
    lock.lock().unlock()
    return messages
  }, lock.sab)
  const done = worker.done()
  assert.strictEqual(await worker.next(), 'late')
  await untilWaiters(lock, 1)
  token.unlock()
  const messages = await done
  assert.deepStrictEqual(messages.map(({ outcome }) => outcome), ['timed-out', 'acquired'])
  assert.ok(messages[0].milliseconds >= 30, messages[0].milliseconds)
})

test('the next holder after a death is told which thread died, also where it did not wait', options, async t => {
  const messages = subscribe(t, 'owner-died')
  const die = async (lock, method) => {
    const worker = startWorker(t, ({ api, data: { sab, byteOffset, kind, method }, post, require }) => {
      new api[kind](sab, { byteOffset })[method]()
      post(require('worker_threads').threadId)
      return new Promise(() => setInterval(() => {}, 1e6))
    }, { sab: lock.sab || lock.buffer, byteOffset: lock.byteOffset || 0, kind: lock.constructor.name, method })
    worker.done().catch(() => {})
    const threadId = await worker.next()
    return { threadId, end: () => worker.terminate() }
  }
  const lock = new AsyncLock(memory(4))
  let { threadId, end } = await die(lock, 'lock')
  const { id } = snapshot().held[0]
  const next = lock.lockAsync()
  await end()
  let token = await next
  assert.strictEqual(token.ownerDied, true)
  await until(() => messages.length === 1)
  assert.deepStrictEqual(messages.pop(), { kind: 'AsyncLock', name: undefined, id, threadId })
  token.unlock()

  ;({ threadId, end } = await die(lock, 'lock'))
  await end()
  token = lock.tryLock()
  assert.strictEqual(token.ownerDied, true)
  await until(() => messages.length === 1)
  assert.deepStrictEqual(messages.pop(), { kind: 'AsyncLock', name: undefined, id, threadId })
  token.unlock()

  const rw = new RwLock(memory(4))
  ;({ threadId, end } = await die(rw, 'lock'))
  await end()
  const share = rw.tryLockShared()
  await until(() => messages.length === 1)
  assert.deepStrictEqual([messages[0].kind, messages[0].threadId, share.ownerDied], ['RwLock', threadId, true])
  share.unlock()
  rw.tryLock().unlock()
})

test('the news of a death comes in the asynchronous context of the wait', options, async t => {
  // The last message of the test before is published in a tick of its own.
  await new Promise(resolve => setImmediate(resolve))
  const storage = new AsyncLocalStorage()
  const messages = subscribe(t, 'owner-died', ({ kind }) => [kind, storage.getStore()])
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  const rw = new RwLock(sab, { byteOffset: 4 })
  const worker = startWorker(t, ({ api, data, post }) => {
    new api.AsyncLock(data).lock()
    new api.RwLock(data, { byteOffset: 4 }).lock()
    post('locked')
    return new Promise(() => setInterval(() => {}, 1e6))
  }, sab)
  worker.done().catch(() => {})
  await worker.next()
  const waits = [
    storage.run('of lockAsync', () => lock.lockAsync().then(token => token.unlock())),
    storage.run('of executeLocked', () => rw.executeLocked(() => {}))
  ]
  await worker.terminate()
  await Promise.all(waits)
  await until(() => messages.length === 2, () => JSON.stringify(messages))
  assert.deepStrictEqual(messages.sort(), [['AsyncLock', 'of lockAsync'], ['RwLock', 'of executeLocked']])
})

test('a thread that dies after its name was stolen is not the dead holder', options, async t => {
  const messages = subscribe(t, 'owner-died')
  const startHolder = steal => startWorker(t, ({ api, data: { steal }, post, require }) => {
    return api.locks.request('a name', { steal }, () => {
      post(require('worker_threads').threadId)
      // The news of a steal does not reach it.
      api.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })
  }, { steal })
  const robbed = startHolder(false)
  await robbed.next()
  const thief = startHolder(true)
  const threadId = await thief.next()
  for (const worker of [robbed, thief]) worker.done().catch(() => {})
  await thief.terminate()
  await robbed.terminate()
  await locks.request('a name', lock => { assert.strictEqual(lock.ownerDied, true) })
  await until(() => messages.some(({ kind }) => kind === 'named'))
  assert.deepStrictEqual(messages.filter(({ kind }) => kind === 'named').map(message => message.threadId), [threadId])
})

test('a wait for a notification is no wait for a lock', options, async t => {
  const messages = subscribe(t, 'wait')
  const latch = new Latch(memory(4), { count: 1 })
  const open = latch.waitAsync()
  latch.countDown()
  await open
  assert.deepStrictEqual(messages, [])
})

test('a subscriber that throws, or takes the same lock, does no harm', options, async t => {
  const { lines, stderr } = await runChild(t, async ({ api, say, require }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    process.on('uncaughtException', error => say('uncaught ' + error.message))
    let calls = 0
    require('diagnostics_channel').channel('atomics-waitasync:wait').subscribe(() => {
      say('locked ' + lock.locked)
      if (++calls < 3) lock.executeLocked(() => say('in turn'))
      if (calls === 1) throw new Error('of a subscriber')
    })
    const token = lock.tryLock()
    const next = lock.lockAsync()
    token.unlock()
    ;(await next).unlock()
    await new Promise(resolve => setTimeout(resolve, 20))
    say('free ' + !lock.locked)
  })
  assert.strictEqual(stderr, '')
  assert.deepStrictEqual(lines.filter(line => line !== 'locked true').sort(), ['free true', 'in turn', 'in turn', 'uncaught of a subscriber'])
})
