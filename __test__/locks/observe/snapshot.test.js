'use strict'
// timeout: 200

// snapshot(): the holds and waits of this process, while other threads go on.

const assert = require('assert')
const { constants } = require('buffer')
const { test } = require('../../harness')
const { api, Atomics } = require('../../subject')
const { turns } = require('../../fixtures/family-toolbox')
const { memory } = require('../../fixtures/lock-toolbox')
const { run } = require('../../fixtures/programs')
const { now, startWorker, until, words } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, locks, snapshot } = api

/**
 * Returns an entry's parts that are the same in every run: as 'Semaphore permits, 3 of 0', with 'blocked' if its thread
 * is.
 */
const plain = ({ kind, mode, amount, threadId, blocked }) => (
  `${kind} ${mode}, ${amount} of ${threadId}${blocked ? ', blocked' : ''}`)
const empty = { held: [], waiting: [], cycles: [] }
const distinct = (entries) => new Set(entries.map(({ id }) => id)).size

test('nothing is held or awaited at first', () => {
  assert.deepStrictEqual(snapshot(), empty)
})

test('what this thread holds is told, by kind and mode, until it is released', async () => {
  const semaphore = new Semaphore()
  semaphore.release(5)
  const tokens = [new AsyncLock().tryLock(), new RwLock().tryLock(), new RwLock().tryLockShared()]
  let end
  const used = semaphore.use(3, () => new Promise(resolve => { end = resolve }))
  const { held, waiting } = snapshot()
  assert.deepStrictEqual(waiting, [])
  const modes = ['AsyncLock exclusive', 'RwLock exclusive', 'RwLock shared']
  const expected = modes.map(mode => `${mode}, undefined of 0`).concat('Semaphore permits, 3 of 0')
  assert.deepStrictEqual(held.map(plain).sort(), expected)
  const keys = ['kind', 'mode', 'id', 'threadId', 'blocked', 'milliseconds']
  for (const each of held) {
    assert.deepStrictEqual(Object.keys(each).filter(key => key !== 'amount'), keys)
    assert.ok(Number.isSafeInteger(each.id) && each.milliseconds >= 0)
    assert.strictEqual(each.blocked, false)
  }
  assert.strictEqual(distinct(held), 4)
  assert.strictEqual(distinct(held.concat(snapshot().held)), 4)
  for (const token of tokens) token.unlock()
  end()
  await used
  assert.deepStrictEqual(snapshot(), empty)
})

test('promises that wait are told by their kind, and have the id of what they wait for', async () => {
  const [lock, rw, semaphore, condition] = [new AsyncLock(), new RwLock(), new Semaphore(), new Condition()]
  const latch = Latch.create({ count: 1 })
  const barrier = Barrier.create({ parties: 2 })
  const [token, writing, own] = [lock.tryLock(), rw.tryLock(), new AsyncLock().tryLock()]
  const ia = words(1)
  const promises = [
    lock.executeLocked(() => {}), rw.executeLocked(() => {}), rw.executeShared(() => {}), semaphore.acquireAsync(2),
    latch.waitAsync(), barrier.waitAsync(), condition.waitAsync(own), Atomics.waitAsync(ia, 0, 0).value
  ]
  const { held, waiting } = snapshot()
  assert.deepStrictEqual(waiting.map(plain).sort(), `AsyncLock exclusive, undefined of 0
Barrier undefined, undefined of 0
Condition undefined, undefined of 0
Latch undefined, undefined of 0
RwLock exclusive, undefined of 0
RwLock shared, undefined of 0
Semaphore permits, 2 of 0
wait undefined, undefined of 0`.split('\n'))
  for (const thing of [lock, rw]) {
    const ids = held.concat(waiting).filter(({ kind }) => kind === thing.kind).map(({ id }) => id)
    assert.ok(ids.length > 1 && ids.every(id => id === thing.id), thing.kind)
  }
  assert.strictEqual(distinct(waiting), 7)
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
  Atomics.notify(ia, 0)
  await Promise.all(promises)
  own.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('a blocked thread is told with what it holds and what it waits for', async t => {
  const own = new AsyncLock(memory(4))
  const [lock, rw] = [new AsyncLock(memory(4)), new RwLock(memory(4))]
  const tokens = [lock.tryLock(), rw.tryLock()]
  const forms = [
    [lock, 'lock', 'AsyncLock exclusive, undefined'],
    [rw, 'lockShared', 'RwLock shared, undefined'],
    [new Semaphore(memory(4)), 'acquire', 'Semaphore permits, 1'],
    [new Barrier(memory(4), { parties: 2 }), 'wait', 'Barrier undefined, undefined'],
    [new Latch(memory(4), { count: 1 }), 'wait', 'Latch undefined, undefined'],
    [new Condition(memory(4)), 'wait', 'Condition undefined, undefined'],
    [null, 'Atomics.wait', 'wait undefined, undefined']
  ]
  for (const [thing, method, what] of forms) {
    const thread = startWorker(t, { own, thing, method }, ({ api, Atomics, data: { own, thing, method }, words }) => {
      const token = new api.AsyncLock(own).lock()
      if (thing === null) Atomics.wait(words(1), 0, 0)
      else new api[thing.kind](thing)[method](...thing.kind === 'Condition' ? [token] : [])
    })
    const { threadId } = thread.worker
    let seen, theirs
    // A hold may be read before its thread is blocked, and the wait afterwards.
    await until(() => {
      seen = snapshot()
      theirs = seen.held.filter(each => each.threadId === threadId)
      return seen.waiting.some(each => each.blocked && each.milliseconds > 0) && theirs.every(({ blocked }) => blocked)
    })
    assert.deepStrictEqual(seen.waiting.map(plain), [`${what} of ${threadId}, blocked`])
    // `Condition.wait` has released it.
    const expected = what.startsWith('Condition') ? [] : [`AsyncLock exclusive, undefined of ${threadId}, blocked`]
    assert.deepStrictEqual(theirs.map(plain), expected)
    await thread.terminate()
    assert.deepStrictEqual(snapshot().waiting, [], what)
  }
  for (const token of tokens) token.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('at no moment is a lock told to have two holders, and nobody is stopped', { timeout: 60000 }, async t => {
  const sab = memory(64)
  const stop = new Int32Array(sab, 60, 1)
  const rounds = new Int32Array(sab, 32, 3)
  const threads = Array.from(rounds, (_, nth) => startWorker(t, { sab, nth }, ({ api, data, Atomics }) => {
    const { sab, nth } = data
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
  }))
  const start = now()
  let held = 0
  // All go on while this thread looks all the time.
  while (now() - start < 1000 || held < 100 || rounds.some((_, nth) => Atomics.load(rounds, nth) < 100)) {
    const kinds = new Map()
    for (const each of snapshot().held) kinds.set(each.id, (kinds.get(each.id) || []).concat(each))
    for (const holders of kinds.values()) {
      held++
      const isExclusive = holders.some(({ mode }) => mode === 'exclusive')
      assert.ok(!isExclusive || holders.length === 1, JSON.stringify(holders))
      assert.strictEqual(new Set(holders.map(({ threadId }) => threadId)).size, holders.length, JSON.stringify(holders))
    }
  }
  Atomics.store(stop, 0, 1)
  await Promise.all(threads.map(thread => thread.done()))
})

test('a thread that releases some of what it holds of a word is told to hold the rest', { timeout: 60000 }, async t => {
  const sab = memory(16)
  const words = new Int32Array(sab)
  const [AT_RW, STOP, ROUNDS] = [1, 2, 3]
  const thread = startWorker(t, { sab, AT_RW, STOP, ROUNDS }, ({ api, data, Atomics }) => {
    const { sab, AT_RW, STOP, ROUNDS } = data
    const words = new Int32Array(sab)
    const [semaphore, rw] = [new api.Semaphore(sab), new api.RwLock(sab, { byteOffset: 4 * AT_RW })]
    semaphore.release(9)
    const takes = [() => semaphore.tryHold(), () => rw.tryLockShared()]
    const held = takes.map(take => [take(), take(), take()])
    for (let n = 0; Atomics.load(words, STOP) === 0; n++) {
      for (const nth of [0, 1]) {
        // Now the last entry of the list, now another.
        held[nth].splice(n % 3, 1)[0].unlock()
        held[nth].push(takes[nth]())
      }
      semaphore.release()
      semaphore.tryAcquire()
      if (held[0].length === 3) Atomics.store(words, ROUNDS, n)
    }
  })
  const { threadId } = thread.worker
  await until(() => Atomics.load(words, ROUNDS) > 0, 'it goes on')
  const holds = ['Semaphore', 'RwLock']
  for (let looks = 0; looks < 3000 || Atomics.load(words, ROUNDS) < 3000; looks++) {
    const { held } = snapshot()
    const counts = holds.map(kind => held.filter(each => each.kind === kind && each.threadId === threadId).length)
    assert.ok(counts.every(count => count === 2 || count === 3), `${counts} of 2 or 3 holds, at look ${looks}`)
  }
  Atomics.store(words, STOP, 1)
  await thread.done()
})

test('what a promise has been granted and not heard of is held', () => {
  const rw = new RwLock(memory(4))
  const token = rw.tryLock()
  const promise = rw.lockSharedAsync()
  token.unlock()
  const { held } = snapshot()
  assert.deepStrictEqual(held.map(plain), ['RwLock shared, undefined of 0'])
  // So two looks at what is on its way see the same.
  assert.strictEqual(held[0].milliseconds, 0)
  return promise.then(share => share.unlock())
})

test('a grant to a thread that has more of the same word is held, too, before and after it hears of it', async () => {
  const [semaphore, rw] = [Semaphore.create(), new RwLock()]
  semaphore.release(3)
  const tokens = [semaphore.tryHold(3)]
  const writer = rw.tryLock()
  const grants = [semaphore.holdAsync(2), semaphore.holdAsync(4), rw.lockSharedAsync()]
  const held = () => snapshot().held.map(plain).sort()
  assert.deepStrictEqual(held(), ['RwLock exclusive, undefined of 0', 'Semaphore permits, 3 of 0'])
  tokens.push(writer.downgrade())
  semaphore.release(2 + 4)
  const shares = ['RwLock shared, undefined of 0', 'RwLock shared, undefined of 0']
  const all = shares.concat([2, 3, 4].map(amount => `Semaphore permits, ${amount} of 0`))
  assert.deepStrictEqual(held(), all)
  tokens.push(...await Promise.all(grants))
  assert.deepStrictEqual(held(), all)
  for (const token of tokens) token.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('locks that are handed over to promises of one thread at the same time have one holder each', async () => {
  const locks = Array.from({ length: 8 }, (_, n) => new AsyncLock(memory(32), { byteOffset: 4 * n }))
  let tokens = locks.map(lock => lock.tryLock())
  const promises = locks.map(lock => lock.lockAsync())
  // Each claim is woken, and finds its lock taken: then it is its turn.
  tokens = tokens.map((token, n) => token.unlock() && locks[n].tryLock())
  await turns(2)
  for (const token of tokens) token.unlock()
  const { held } = snapshot()
  assert.deepStrictEqual([held.length, distinct(held)], [8, 8])
  for (const token of await Promise.all(promises)) token.unlock()
  assert.deepStrictEqual(snapshot(), empty)
})

test('other code that has patched built-ins and prototypes changes no snapshot', async t => {
  const { lines, stderr, code } = await run(t, ({ api, heldLock, say }) => {
    heldLock().lockAsync()
    api.snapshot()
    let calls = 0
    const count = () => { calls++ }
    const places = [].concat(...['kind', 'mode', 'id', 'threadId', 'held', 'waiting', 'milliseconds', '0'].map(key => (
      [Object.prototype, Array.prototype].map(prototype => ({ prototype, key })))))
    for (const { prototype, key } of places) {
      Object.defineProperty(prototype, key, { set: count, get: () => undefined, configurable: true })
    }
    JSON.parse = count
    const { held, waiting } = api.snapshot()
    const text = held.length + ' ' + waiting.length + ' ' + held[0].kind + ' ' + calls
    for (const { prototype, key } of places) delete prototype[key]
    say(text)
    process.exit()
  })
  assert.deepStrictEqual([lines, code], [['1 1 AsyncLock 0'], 0], stderr)
})

test('a snapshot of many waits is complete', async () => {
  const ia = words(1000)
  const promises = Array.from({ length: 20000 }, (_, n) => Atomics.waitAsync(ia, n % 1000, 0).value)
  const { waiting } = snapshot()
  assert.deepStrictEqual([waiting.length, distinct(waiting)], [20000, 1000])
  for (let n = 0; n < 1000; n++) Atomics.notify(ia, n)
  await Promise.all(promises)
})

test('names are shortened in messages; a snapshot too long for a string is an error', { timeout: 120000 }, async () => {
  // A lone surrogate takes six characters of what native code tells.
  const names = Array.from({ length: 90 }, (_, n) => n + 'x'.repeat(200) + '\ud800'.repeat(2 ** 20))
  const releases = []
  const held = names.map(name => locks.request(name, () => new Promise(resolve => releases.push(resolve))))
  await turns(1)
  const { message } = await locks.request(names[0], { timeout: 1 }, () => {}).catch(error => error)
  assert.ok(message.length < 200, message.slice(0, 300))
  assert.ok(/^Timed out after 1 ms waiting for the lock named "0x+…?/.test(message), message)
  // Before Node 16 strings may be twice as long.
  if (constants.MAX_STRING_LENGTH < 2 ** 29) {
    assert.throws(snapshot, RangeError)
    await assert.rejects(locks.query(), RangeError)
  }
  for (const release of releases) release()
  await Promise.all(held)
  assert.deepStrictEqual(snapshot().held, [])
})
