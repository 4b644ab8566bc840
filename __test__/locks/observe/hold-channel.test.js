'use strict'

// The channel `atomics-waitasync:hold`: how long something was held, on a Node that has channels.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { needsChannels, subscribe } = require('../../fixtures/channels')
const { untilWaiters } = require('../../fixtures/family-toolbox')
const { memory } = require('../../fixtures/lock-toolbox')
const { run } = require('../../fixtures/programs')
const { sleep, startWorker } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Condition, Queue, RwLock, Semaphore, locks, snapshot } = api

/** Hears of the holds that begin from now on. `take()`: the messages since the last call. */
function hear (t) {
  const { messages, stop } = subscribe(t, 'hold')
  const take = () => messages.splice(0)
  return { stop, take, modes: () => take().map(({ kind, mode }) => `${kind} ${mode}`) }
}

test('a hold is told of when it ends, with how long it lasted', needsChannels, async t => {
  const { take } = hear(t)
  const lock = new AsyncLock(memory(4), { name: 'accounts' })
  const began = Date.now()
  const token = lock.tryLock()
  const [{ id }] = snapshot().held
  await sleep(20)
  assert.deepStrictEqual(take(), [])
  token.unlock()
  const most = Date.now() - began + 1
  const [{ milliseconds, ...message }, ...more] = take()
  assert.deepStrictEqual([message, more], [{ kind: 'AsyncLock', mode: 'exclusive', name: 'accounts', id }, []])
  assert.ok(milliseconds > 15 && milliseconds <= most, `${milliseconds} of ${most}`)
  token.unlock()
  assert.deepStrictEqual(take(), [])
})

test('each kind of hold, in whichever way it begins and ends, is reported once', needsChannels, async t => {
  const { modes } = hear(t)
  const [lock, rw, semaphore, condition] = [new AsyncLock(), new RwLock(), new Semaphore(), new Condition()]
  const EXCLUSIVE = 'AsyncLock exclusive'

  lock.tryLock()
  lock.unlock()
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'unlock of the lock')
  lock.tryLock().abandon()
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'abandon')
  await lock.executeLocked(() => {})
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'executeLocked')
  await assert.rejects(lock.executeLocked(() => { throw new Error('of the callback') }))
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'a callback that fails')

  const token = lock.tryLock()
  const next = lock.lockAsync()
  token.unlock()
  ;(await next).unlock()
  assert.deepStrictEqual(modes(), [EXCLUSIVE, EXCLUSIVE], 'a hold that was waited for')
  assert.strictEqual(lock.tryLock() && lock.tryLock(), null)
  lock.unlock()
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'an attempt in vain')

  const reading = rw.tryLock().downgrade()
  await sleep(1)
  assert.deepStrictEqual(modes(), ['RwLock exclusive'], 'downgrade')
  reading.unlock()
  await rw.executeShared(() => {})
  assert.deepStrictEqual(modes(), ['RwLock shared', 'RwLock shared'])

  semaphore.release(2)
  await semaphore.use(2, () => {})
  semaphore.tryHold().unlock()
  semaphore.tryAcquire(2)
  assert.deepStrictEqual(modes(), ['Semaphore permits', 'Semaphore permits'], 'permits that were acquired are not held')

  const waiting = lock.tryLock()
  const notified = condition.waitAsync(waiting)
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'a wait of a Condition')
  condition.notify()
  await notified
  waiting.unlock()
  assert.deepStrictEqual(modes(), [EXCLUSIVE], 'and what follows it')

  await locks.request('a name', () => {})
  await locks.request('a name', { mode: 'shared' }, () => {})
  ;(await locks.holdAsync('a name')).unlock()
  locks.tryHold('a name', { mode: 'shared' }).unlock()
  assert.deepStrictEqual(modes(), ['named exclusive', 'named shared', 'named exclusive', 'named shared'])
  const robbed = locks.request('a name', () => new Promise(() => {}))
  const stolen = locks.request('a name', { steal: true }, () => robbed.catch(() => {}))
  await stolen
  await sleep(1)
  assert.deepStrictEqual(modes(), ['named exclusive', 'named exclusive'], 'a steal')
  const loser = locks.tryHold('a name')
  const thief = await locks.holdAsync('a name', { steal: true })
  assert.deepStrictEqual([loser.unlock(), thief.unlock()], [false, true])
  assert.deepStrictEqual(modes(), ['named exclusive', 'named exclusive'], 'a steal from a token')

  const queue = Queue.create({ capacity: 2, messageSize: 64, name: 'jobs' })
  queue.tryPut(1)
  await queue.use(() => {})
  await sleep(1)
  assert.deepStrictEqual(modes(), ['Queue use'], 'a message in use, and none of a queue\'s own locks')
})

test('a hold that began without subscribers is not told of, nor one that ends without them', needsChannels, t => {
  const lock = new AsyncLock(memory(4))
  const early = lock.tryLock()
  const { stop, take } = hear(t)
  early.unlock()
  assert.deepStrictEqual(take(), [])
  lock.tryLock().unlock()
  assert.strictEqual(take().length, 1)
  const late = lock.tryLock()
  stop()
  late.unlock()
  assert.deepStrictEqual(take(), [])
})

test('a thread that never turns its loop tells of its holds at once, in whichever order', needsChannels, async t => {
  const thread = startWorker(t, null, ({ api, subscribe }) => {
    const { AsyncLock, Condition, locks } = api
    const [a, b] = ['a', 'b'].map(name => AsyncLock.create({ name }))
    const names = []
    subscribe('hold', ({ name }) => names.push(name))
    const counts = []
    for (let n = 0; n < 1000; n++) {
      const [first, second] = [a.lock(), b.lock()]
      if (n % 2 === 0) first.unlock()
      second.unlock()
      if (n % 2 !== 0) first.unlock()
      locks.requestSync('c', () => {})
      counts.push(names.length)
    }
    const token = a.lock()
    if (new Condition().wait(token, { timeout: 1 })) throw new Error('nobody notifies')
    counts.push(names.length)
    token.unlock()
    return { counts, begin: names.slice(0, 6).join(''), end: names.slice(3000).join('') }
  })
  const { counts, begin, end } = await thread.done()
  assert.deepStrictEqual(counts, Array.from({ length: 1001 }, (_, n) => n < 1000 ? 3 * n + 3 : 3001))
  assert.deepStrictEqual([begin, end], ['abcbac', 'aa'])
})

test('what a thread blocked for is told of; what it holds when it ends is not', needsChannels, async t => {
  const { take } = hear(t)
  const lock = new AsyncLock(memory(4))
  const token = lock.tryLock()
  const thread = startWorker(t, lock, ({ api, data, post, subscribe }) => {
    const messages = []
    subscribe('hold', ({ kind }) => messages.push(kind))
    const lock = new api.AsyncLock(data)
    lock.lock().unlock()
    post(messages)
    lock.lock()
    post('it holds the lock')
    return new Promise(() => setInterval(() => {}, 1e6))
  })
  await untilWaiters(lock.buffer, 0, 1)
  token.unlock()
  assert.deepStrictEqual(await thread.next(), ['AsyncLock'])
  assert.strictEqual(await thread.next(), 'it holds the lock')
  await thread.terminate()
  const heir = lock.tryLock()
  assert.strictEqual(heir.ownerDied, true)
  assert.strictEqual(take().length, 1)
  heir.unlock()
  assert.strictEqual(take().length, 1)
})

test('a subscriber may take the same lock, and throw', needsChannels, async t => {
  const { lines, stderr } = await run(t, ({ newLock, say, subscribe }) => {
    const lock = newLock()
    process.on('uncaughtException', error => say('uncaught ' + error.message))
    let calls = 0
    subscribe('hold', () => {
      say('free ' + !lock.locked)
      const nth = ++calls
      if (nth === 1) lock.executeLocked(() => {})
      if (nth === 2) throw new Error('of a subscriber')
    })
    lock.tryLock().unlock()
    say('free ' + !lock.locked)
  })
  assert.strictEqual(stderr, '')
  assert.deepStrictEqual(lines, ['free true', 'free true', 'free true', 'uncaught of a subscriber'])
})
