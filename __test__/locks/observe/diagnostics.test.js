'use strict'

// What `diagnostics_channel` is told, on a Node that has it.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { needsChannels, subscribe } = require('../../fixtures/channels')
const { startMember, turns } = require('../../fixtures/family-toolbox')
const { TinyController, memory, untilWaiters } = require('../../fixtures/lock-toolbox')
const { run } = require('../../fixtures/programs')
const { startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Latch, Queue, RwLock, Semaphore, locks } = api

const facts = ({ kind, mode, name, outcome }) => `${kind} ${mode} ${name} ${outcome}`

test('a promise that waited is told of with its outcome; one that did not is not', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait')
  const lock = AsyncLock.create({ name: 'accounts' })
  const token = lock.tryLock()
  const next = lock.lockAsync()
  assert.deepStrictEqual(messages, [])
  token.unlock()
  ;(await next).unlock()
  ;(await lock.lockAsync()).unlock()
  assert.deepStrictEqual(messages.map(facts), ['AsyncLock exclusive accounts acquired'])
  assert.deepStrictEqual(Object.keys(messages[0]), ['kind', 'mode', 'name', 'id', 'milliseconds', 'outcome'])
  assert.strictEqual(messages[0].id, lock.id)
  assert.ok(messages[0].milliseconds >= 0)

  const rw = new RwLock()
  const writing = rw.tryLock()
  await assert.rejects(rw.lockSharedAsync({ timeout: 10 }), { name: 'TimeoutError' })
  const { signal, abort } = new TinyController()
  const aborted = rw.executeLocked(() => {}, { signal })
  abort()
  await assert.rejects(aborted)
  writing.unlock()
  const semaphore = new Semaphore()
  const used = semaphore.use(1, () => {})
  semaphore.release()
  await used
  const expected = ['RwLock shared | timed-out', 'RwLock exclusive | aborted', 'Semaphore permits | acquired']
  assert.deepStrictEqual(messages.slice(1).map(facts), expected.map(text => text.replace('|', 'undefined')))
  assert.ok(messages[1].milliseconds >= 10, messages[1].milliseconds)
})

test('waits for a Queue are told of, by promises and by threads, each once', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait')
  const queue = Queue.create({ capacity: 1, messageSize: 16, name: 'jobs' })
  // The time until the promise waits counts, too, but is not told.
  const late = { timeout: 50 }
  await queue.putAsync(1)
  await assert.rejects(queue.putAsync(2, { timeout: 0 }), { name: 'TimeoutError' })
  await assert.rejects(queue.putAsync(2, late), { name: 'TimeoutError' })
  const puts = [3, 4].map(n => queue.putAsync(n))
  assert.strictEqual(queue.tryTake(), 1)
  for (const n of [3, 4]) {
    await puts.shift()
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
  const expected = 'put timed-out, put acquired, put acquired, take aborted, use acquired, use ended'
  assert.strictEqual(messages.map(({ mode, outcome }) => `${mode} ${outcome}`).join(', '), expected)
  assert.ok(messages.every(({ kind, name }) => kind === 'Queue' && name === 'jobs'))
  assert.ok(messages.every(({ id }) => id === queue.id) && messages[0].milliseconds >= 10, JSON.stringify(messages))

  const blocking = Queue.create({ capacity: 1, messageSize: 16 })
  const thread = startWorker(t, blocking, ({ api, data, subscribe }) => {
    const messages = []
    subscribe('wait', message => messages.push(message))
    const queue = new api.Queue(data)
    for (const timeout of [0, 10]) try { queue.take({ timeout }) } catch (_) {}
    queue.put('taken')
    queue.put('used')
    for (let n = 0; n < 2; n++) queue.useSync(() => {})
    return messages.map(({ mode, outcome, id }) => `${mode} ${outcome} ${id}`)
  })
  await until(() => blocking.length === 1 && blocking.waiters === 1, 'it waits for room')
  assert.strictEqual(await blocking.takeAsync(), 'taken')
  await until(() => blocking.ended || (blocking.length === 0 && blocking.waiters === 1), 'it waits for a message')
  blocking.close()
  const { id } = blocking
  assert.deepStrictEqual(await thread.done(), [`take timed-out ${id}`, `put acquired ${id}`, `use ended ${id}`])
})

test('a thread that blocked tells of it itself', needsChannels, async t => {
  const lock = new AsyncLock(memory(4))
  const token = lock.tryLock()
  const thread = startWorker(t, lock, ({ api, data, post, subscribe }) => {
    const messages = []
    subscribe('wait', message => messages.push(message))
    const lock = new api.AsyncLock(data)
    if (lock.lockIfAvailable(30) !== null) throw new Error('it was held')
    post('late')
    lock.lock().unlock()
    lock.lock().unlock()
    return messages
  })
  assert.strictEqual(await thread.next(), 'late')
  await untilWaiters(lock, 1)
  token.unlock()
  const messages = await thread.done()
  assert.deepStrictEqual(messages.map(({ outcome }) => outcome), ['timed-out', 'acquired'])
  assert.ok(messages[0].milliseconds >= 30, messages[0].milliseconds)
})

test('the next holder after a death is told which thread died, also where it did not wait', needsChannels, async t => {
  const { messages } = subscribe(t, 'owner-died')
  const sab = memory(8)
  const [lock, rw] = [new AsyncLock(sab), new RwLock(sab, { byteOffset: 4 })]
  for (const [thing, take] of [[lock, 'lockAsync'], [lock, 'tryLock'], [rw, 'tryLockShared']]) {
    const waits = take === 'lockAsync'
    const member = await startMember(t, sab)
    await member.on(thing.kind, thing.byteOffset)('lock')
    let next = waits && thing[take]()
    await member.terminate()
    if (!waits) next = thing[take]()
    const token = await next
    assert.strictEqual(token.ownerDied, true)
    await until(() => messages.length === 1)
    const { kind, id } = thing
    assert.deepStrictEqual(messages.pop(), { kind, name: undefined, id, threadId: member.threadId })
    token.unlock()
  }
  rw.tryLock().unlock()
})

test('the news of a death comes in the asynchronous context of the wait', needsChannels, async t => {
  // The last message of the test before is published in a tick of its own.
  await turns(1)
  const storage = new AsyncLocalStorage()
  const { messages } = subscribe(t, 'owner-died', ({ kind }) => `${kind} ${storage.getStore()}`)
  const sab = memory(8)
  const [lock, rw] = [new AsyncLock(sab), new RwLock(sab, { byteOffset: 4 })]
  const member = await startMember(t, sab)
  await member.on('AsyncLock')('lock')
  await member.on('RwLock', 4)('lock as another')
  const waits = [
    storage.run('of lockAsync', () => lock.lockAsync().then(token => token.unlock())),
    storage.run('of executeLocked', () => rw.executeLocked(() => {}))
  ]
  await member.terminate()
  await Promise.all(waits)
  await until(() => messages.length === 2, () => JSON.stringify(messages))
  assert.deepStrictEqual(messages.sort(), ['AsyncLock of lockAsync', 'RwLock of executeLocked'])
})

test('a thread that dies after its name was stolen is not the dead holder', needsChannels, async t => {
  const { messages } = subscribe(t, 'owner-died')
  const startHolder = steal => startWorker(t, { steal }, ({ api, data, post, require, words }) => {
    return api.locks.request('a name', data, () => {
      post(require('worker_threads').threadId)
      // The news of a steal does not reach it.
      api.wait(words(1), 0, 0)
    })
  })
  const robbed = startHolder(false)
  await robbed.next()
  const thief = startHolder(true)
  const threadId = await thief.next()
  await thief.terminate()
  await robbed.terminate()
  await locks.request('a name', lock => { assert.strictEqual(lock.ownerDied, true) })
  const ofNames = () => messages.filter(({ kind }) => kind === 'named')
  await until(() => ofNames().length > 0)
  assert.deepStrictEqual(ofNames().map(message => message.threadId), [threadId])
})

test('a wait for a notification is no wait for a lock', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait')
  const latch = Latch.create({ count: 1 })
  const open = latch.waitAsync()
  latch.countDown()
  await open
  assert.deepStrictEqual(messages, [])
})

test('a subscriber that throws, or takes the same lock, does no harm', needsChannels, async t => {
  const { lines, stderr } = await run(t, async ({ newLock, say, sleep, subscribe }) => {
    const lock = newLock()
    process.on('uncaughtException', error => say('uncaught ' + error.message))
    let calls = 0
    subscribe('wait', () => {
      say('locked ' + lock.locked)
      if (++calls < 3) lock.executeLocked(() => say('in turn'))
      if (calls === 1) throw new Error('of a subscriber')
    })
    const token = lock.tryLock()
    const next = lock.lockAsync()
    token.unlock()
    ;(await next).unlock()
    await sleep(20)
    say('free ' + !lock.locked)
  })
  assert.strictEqual(stderr, '')
  const told = lines.filter(line => line !== 'locked true').sort()
  assert.deepStrictEqual(told, ['free true', 'in turn', 'in turn', 'uncaught of a subscriber'])
})
