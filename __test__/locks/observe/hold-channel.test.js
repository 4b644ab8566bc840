'use strict'

// The channel `atomics-waitasync:hold`: how long something was held, on a Node that has channels.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { memory, untilWaiters } = require('../../fixtures/lock-toolbox')
const { runChild, sleep, startWorker } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Condition, Queue, RwLock, Semaphore, locks, snapshot } = api

let diagnostics
try {
  diagnostics = require('diagnostics_channel')
} catch (_) {}
const options = { skip: diagnostics === undefined && 'this Node has no diagnostics_channel' }

const NAME = 'atomics-waitasync:hold'

/** Hears of the holds that begin from now on. `take()`: the messages since the last call. */
function hear (t) {
  const channel = diagnostics.channel(NAME)
  let messages = []
  const listener = message => { messages.push(message) }
  const stop = () => channel.unsubscribe(listener)
  channel.subscribe(listener)
  t.after(stop)
  const take = () => {
    const taken = messages
    messages = []
    return taken
  }
  return { stop, take, modes: () => take().map(({ kind, mode }) => `${kind} ${mode}`) }
}

test('a hold is told of when it ends, with how long it lasted', options, async t => {
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

test('each kind of hold, in whichever way it begins and ends, is told of once', options, async t => {
  const { modes } = hear(t)
  const sab = memory(16)
  const lock = new AsyncLock(sab)
  const rw = new RwLock(sab, { byteOffset: 4 })
  const semaphore = new Semaphore(sab, { byteOffset: 8 })
  const condition = new Condition(sab, { byteOffset: 12 })
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
  assert.deepStrictEqual(modes(), ['named exclusive', 'named shared'])
  const robbed = locks.request('a name', () => new Promise(() => {}))
  const stolen = locks.request('a name', { steal: true }, () => robbed.catch(() => {}))
  await stolen
  await sleep(1)
  assert.deepStrictEqual(modes(), ['named exclusive', 'named exclusive'], 'a steal')

  const queue = Queue.create({ capacity: 2, messageSize: 64, name: 'jobs' })
  queue.tryPut(1)
  await queue.use(() => {})
  await sleep(1)
  assert.deepStrictEqual(modes(), ['Queue use'], 'a message in use, and none of a queue\'s own locks')
})

test('a hold that began without subscribers is not told of, nor one that ends without them', options, t => {
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

test('a thread that never turns its loop tells of its holds at once, released in whichever order', options, async t => {
  const worker = startWorker(t, ({ api, data: sab, require }) => {
    const { AsyncLock, Condition, locks } = api
    const [a, b] = [0, 4].map(byteOffset => new AsyncLock(sab, { byteOffset, name: byteOffset === 0 ? 'a' : 'b' }))
    const condition = new Condition(sab, { byteOffset: 8 })
    const names = []
    require('diagnostics_channel').channel('atomics-waitasync:hold').subscribe(({ name }) => names.push(name))
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
    if (condition.wait(token, { timeout: 1 })) throw new Error('nobody notifies')
    counts.push(names.length)
    token.unlock()
    return { counts, begin: names.slice(0, 6).join(''), end: names.slice(3000).join('') }
  }, memory(12))
  const { counts, begin, end } = await worker.done()
  assert.deepStrictEqual(counts, Array.from({ length: 1001 }, (_, n) => n < 1000 ? 3 * n + 3 : 3001))
  assert.deepStrictEqual([begin, end], ['abcbac', 'aa'])
})

test('what a thread blocked for is told of; what it holds when it ends is not', options, async t => {
  const { take } = hear(t)
  const lock = new AsyncLock(memory(4))
  const token = lock.tryLock()
  const worker = startWorker(t, ({ api, data: sab, post, require }) => {
    const messages = []
    require('diagnostics_channel').channel('atomics-waitasync:hold').subscribe(({ kind }) => messages.push(kind))
    const lock = new api.AsyncLock(sab)
    lock.lock().unlock()
    post(messages)
    lock.lock()
    post('it holds the lock')
    return new Promise(() => setInterval(() => {}, 1e6))
  }, lock.sab)
  worker.done().catch(() => {})
  await untilWaiters(lock, 1)
  token.unlock()
  assert.deepStrictEqual(await worker.next(), ['AsyncLock'])
  assert.strictEqual(await worker.next(), 'it holds the lock')
  await worker.terminate()
  const heir = lock.tryLock()
  assert.strictEqual(heir.ownerDied, true)
  assert.strictEqual(take().length, 1)
  heir.unlock()
  assert.strictEqual(take().length, 1)
})

test('a subscriber may take the same lock, and throw', options, async t => {
  const { lines, stderr } = await runChild(t, ({ api, say, require }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    process.on('uncaughtException', error => say('uncaught ' + error.message))
    let calls = 0
    require('diagnostics_channel').channel('atomics-waitasync:hold').subscribe(() => {
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
