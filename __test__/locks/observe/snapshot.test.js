'use strict'
// oldest: force (there AsyncLocalStorage is missing, whose tasks a snapshot shows)
// timeout: 200

// snapshot(): what is held and awaited in this process, while other threads go on.

const assert = require('assert')
const { test } = require('../../harness')
const { api, Atomics } = require('../../subject')
const { memory } = require('../../fixtures/lock-toolbox')
const { now, runChild, startWorker, until, words } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, snapshot } = api

/** The entries without what differs from run to run. */
const plain = (entries) => entries.map(({ kind, mode, amount, threadId, blocked }) => ({ kind, mode, amount, threadId, blocked }))
const byKind = (a, b) => (a.kind + a.mode + a.threadId < b.kind + b.mode + b.threadId ? -1 : 1)
const entry = (kind, mode, threadId, blocked, amount) => ({ kind, mode, amount, threadId, blocked })
const empty = { held: [], waiting: [], cycles: [] }

test('nothing is held or awaited at first', () => {
  assert.deepStrictEqual(snapshot(), empty)
})

test('what this thread holds is told, by kind and mode, until it is released', async () => {
  const sab = memory(64)
  const semaphore = new Semaphore(sab, { byteOffset: 12 })
  semaphore.release(5)
  const tokens = [new AsyncLock(sab).tryLock(), new RwLock(sab, { byteOffset: 4 }).tryLock(), new RwLock(sab, { byteOffset: 8 }).tryLockShared()]
  let end
  const used = semaphore.use(3, () => new Promise(resolve => { end = resolve }))
  const { held, waiting } = snapshot()
  assert.deepStrictEqual(waiting, [])
  assert.deepStrictEqual(plain(held).sort(byKind), [
    entry('AsyncLock', 'exclusive', 0, false), entry('RwLock', 'exclusive', 0, false), entry('RwLock', 'shared', 0, false),
    entry('Semaphore', 'permits', 0, false, 3)
  ])
  for (const each of held) {
    assert.deepStrictEqual(Object.keys(each).filter(key => key !== 'amount'), ['kind', 'mode', 'id', 'threadId', 'blocked', 'milliseconds'])
    assert.ok(Number.isSafeInteger(each.id) && each.milliseconds >= 0)
  }
  assert.strictEqual(new Set(held.map(({ id }) => id)).size, 4)
  assert.deepStrictEqual(snapshot().held.map(({ id }) => id).sort(), held.map(({ id }) => id).sort())
  for (const token of tokens) token.unlock()
  end()
  await used
  assert.deepStrictEqual(snapshot(), empty)
})

test('promises that wait are told by their kind, and have the id of what they wait for', async t => {
  const sab = memory(64)
  const at = (byteOffset, more) => Object.assign({ byteOffset }, more)
  const lock = new AsyncLock(sab)
  const rw = new RwLock(sab, at(4))
  const token = lock.tryLock()
  const writing = rw.tryLock()
  const latch = new Latch(sab, at(12, { count: 1 }))
  const barrier = new Barrier(sab, at(16, { parties: 2 }))
  const condition = new Condition(sab, at(20))
  const own = new AsyncLock(sab, at(24)).tryLock()
  const semaphore = new Semaphore(sab, at(8))
  const ia = new Int32Array(sab)
  const promises = [
    lock.lockAsync().then(token => token.unlock()), rw.lockAsync().then(token => token.unlock()), rw.lockSharedAsync().then(token => token.unlock()),
    semaphore.acquireAsync(2), latch.waitAsync(), barrier.waitAsync(), condition.waitAsync(own).then(() => own.unlock()), Atomics.waitAsync(ia, 8, 0).value
  ]
  const { held, waiting } = snapshot()
  assert.deepStrictEqual(plain(waiting).sort(byKind), [
    entry('AsyncLock', 'exclusive', 0, false), entry('Barrier', undefined, 0, false), entry('Condition', undefined, 0, false),
    entry('Latch', undefined, 0, false), entry('RwLock', 'exclusive', 0, false), entry('RwLock', 'shared', 0, false),
    entry('Semaphore', 'permits', 0, false, 2), entry('wait', undefined, 0, false)
  ])
  const ids = kind => new Set(held.concat(waiting).filter(each => each.kind === kind).map(({ id }) => id))
  assert.deepStrictEqual([ids('AsyncLock').size, ids('RwLock').size], [1, 1])
  assert.strictEqual(new Set(waiting.map(({ id }) => id)).size, 7)
  // For how long is known of all but the promise of `Atomics.waitAsync`.
  for (const { kind, milliseconds } of waiting) assert.strictEqual(milliseconds >= 0, kind !== 'wait', kind)
  assert.ok(waiting.some(({ kind, milliseconds }) => kind === 'wait' && Number.isNaN(milliseconds)))
  const start = now()
  await until(() => now() - start > 20)
  const times = new Map(waiting.map(({ kind, mode, milliseconds }) => [kind + mode, milliseconds]))
  for (const { kind, mode, milliseconds } of snapshot().waiting) {
    if (kind !== 'wait') assert.ok(milliseconds >= times.get(kind + mode) + 20, kind)
  }
  for (const { kind, milliseconds } of snapshot().held) assert.ok(milliseconds >= 20, kind)
  token.unlock()
  writing.unlock()
  latch.countDown()
  barrier.waitAsync()
  condition.notify()
  semaphore.release(2)
  Atomics.notify(ia, 8)
  await Promise.all(promises)
  assert.deepStrictEqual(snapshot(), empty)
})

test('a blocked thread is told with what it holds and what it waits for', async t => {
  const sab = memory(64)
  const token = new AsyncLock(sab).tryLock()
  const forms = [
    ['AsyncLock', 0, 'lock', []], ['RwLock', 4, 'lockShared', []], ['Semaphore', 8, 'acquire', [1]],
    ['Barrier', 16, 'wait', []], ['Latch', 20, 'wait', []], ['Condition', 24, 'wait', ['token']], ['wait', 28]
  ]
  const writing = new RwLock(sab, { byteOffset: 4 }).tryLock()
  for (const [kind, byteOffset, method, args] of forms) {
    const worker = startWorker(t, ({ api, Atomics, data: { sab, kind, byteOffset, method, args }, post, require }) => {
      post(require('worker_threads').threadId)
      const token = new api.AsyncLock(sab, { byteOffset: 60 }).lock()
      if (kind === 'wait') Atomics.wait(new Int32Array(sab), byteOffset / 4, 0)
      else {
        const more = { Barrier: { parties: 2 }, Latch: { count: 1 } }[kind]
        new api[kind](sab, Object.assign({ byteOffset }, more))[method](...args.map(arg => arg === 'token' ? token : arg))
      }
    }, { sab, kind, byteOffset, method, args: args || [] })
    const threadId = await worker.next()
    let seen
    await until(() => { seen = snapshot().waiting.filter(each => each.threadId === threadId && each.milliseconds > 0); return seen.length > 0 })
    const mode = { AsyncLock: 'exclusive', RwLock: 'shared', Semaphore: 'permits' }[kind]
    assert.deepStrictEqual(plain(seen), [entry(kind, mode, threadId, true, kind === 'Semaphore' ? 1 : undefined)])
    const held = plain(snapshot().held.filter(each => each.threadId === threadId))
    // `Condition.wait` has released it.
    assert.deepStrictEqual(held, kind === 'Condition' ? [] : [entry('AsyncLock', 'exclusive', threadId, true)])
    worker.done().catch(() => {})
    await worker.terminate()
    assert.deepStrictEqual(snapshot().waiting, [], kind)
  }
  token.unlock()
  writing.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('at no moment is a lock told to have two holders, and nobody is stopped', { timeout: 60000 }, async t => {
  const sab = memory(64)
  const stop = new Int32Array(sab, 60, 1)
  const turns = new Int32Array(sab, 32, 3)
  const workers = Array.from(turns, (_, nth) => startWorker(t, ({ api, data: { sab, nth }, Atomics }) => {
    const lock = new api.AsyncLock(sab)
    const rw = new api.RwLock(sab, { byteOffset: 4 })
    const words = new Int32Array(sab)
    for (let turns = 0; Atomics.load(words, 15) === 0; Atomics.store(words, 8 + nth, turns)) {
      const token = lock.lock()
      const share = turns % 4 === 0 ? rw.lock() : rw.lockShared()
      turns++
      if (turns % 2 === 0) token.unlock()
      share.unlock()
      token.unlock()
    }
  }, { sab, nth }))
  const start = now()
  let held = 0
  // All go on while this thread looks all the time.
  while (now() - start < 1000 || held < 100 || turns.some((_, nth) => Atomics.load(turns, nth) < 100)) {
    const kinds = new Map()
    for (const { id, mode, threadId } of snapshot().held) kinds.set(id, (kinds.get(id) || []).concat({ mode, threadId }))
    for (const holders of kinds.values()) {
      held++
      if (holders.some(({ mode }) => mode === 'exclusive')) assert.strictEqual(holders.length, 1, JSON.stringify(holders))
      assert.strictEqual(new Set(holders.map(({ threadId }) => threadId)).size, holders.length, JSON.stringify(holders))
    }
  }
  Atomics.store(stop, 0, 1)
  await Promise.all(workers.map(worker => worker.done()))
})

test('what a promise has been granted and not heard of is held', () => {
  const rw = new RwLock(memory(4))
  const token = rw.tryLock()
  const promise = rw.lockSharedAsync()
  token.unlock()
  const { held } = snapshot()
  assert.deepStrictEqual(plain(held), [entry('RwLock', 'shared', 0, false)])
  // So two looks at what is on its way see the same.
  assert.strictEqual(held[0].milliseconds, 0)
  return promise.then(share => share.unlock())
})

test('locks that are handed over to promises of one thread at the same time have one holder each', async () => {
  const locks = Array.from({ length: 8 }, (_, n) => new AsyncLock(memory(32), { byteOffset: 4 * n }))
  let tokens = locks.map(lock => lock.tryLock())
  const promises = locks.map(lock => lock.lockAsync())
  // Each claim is woken, and finds its lock taken: then it is its turn.
  tokens = tokens.map((token, n) => token.unlock() && locks[n].tryLock())
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  for (const token of tokens) token.unlock()
  const { held } = snapshot()
  assert.deepStrictEqual([held.length, new Set(held.map(({ id }) => id)).size], [8, 8])
  for (const token of await Promise.all(promises)) token.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('other code that has patched built-ins and prototypes changes no snapshot', async t => {
  const { lines, stderr, code } = await runChild(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    lock.lockAsync()
    api.snapshot()
    let calls = 0
    const restore = () => {
      for (const key of ['kind', 'mode', 'id', 'threadId', 'held', 'waiting', 'milliseconds', '0']) {
        for (const prototype of [Object.prototype, Array.prototype]) delete prototype[key]
      }
    }
    for (const key of ['kind', 'mode', 'id', 'threadId', 'held', 'waiting', 'milliseconds', '0']) {
      for (const prototype of [Object.prototype, Array.prototype]) {
        Object.defineProperty(prototype, key, { set () { calls++ }, get () { return undefined }, configurable: true })
      }
    }
    JSON.parse = () => { calls++ }
    const { held, waiting } = api.snapshot()
    const text = held.length + ' ' + waiting.length + ' ' + held[0].kind + ' ' + calls
    restore()
    say(text)
    process.exit()
  })
  assert.deepStrictEqual([lines, code], [['1 1 AsyncLock 0'], 0], stderr)
})

test('a snapshot of many waits is complete', async () => {
  const ia = words(1000)
  const promises = []
  for (let n = 0; n < 20000; n++) promises.push(Atomics.waitAsync(ia, n % 1000, 0).value)
  const { waiting } = snapshot()
  assert.strictEqual(waiting.length, 20000)
  assert.strictEqual(new Set(waiting.map(({ id }) => id)).size, 1000)
  for (let n = 0; n < 1000; n++) Atomics.notify(ia, n)
  await Promise.all(promises)
})

test('names are shortened in messages, and a snapshot or a query that would be too long is an error', { timeout: 120000 }, async () => {
  const { locks, snapshot } = api
  const long = n => n + 'x'.repeat(2 ** 20)
  let release
  const names = Array.from({ length: 520 }, (_, n) => long(n))
  const held = names.map(name => locks.request(name, () => new Promise(resolve => { release = [].concat(release || [], resolve) })))
  await new Promise(setImmediate)
  const error = await locks.request(names[0], { timeout: 1 }, () => {}).catch(error => error)
  assert.ok(error.message.length < 200 && /^Timed out after 1 ms waiting for the lock named "0x+…?/.test(error.message), error.message.slice(0, 300))
  assert.throws(snapshot, /^RangeError: snapshot: what is held and awaited has too many entries, or names that are too long/)
  await assert.rejects(locks.query(), /^RangeError: query: what is held and awaited has too many entries, or names that are too long/)
  for (const each of release) each()
  await Promise.all(held)
  assert.deepStrictEqual(snapshot().held, [])
})
