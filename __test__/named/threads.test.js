'use strict'

// `locks` among threads: exclusion, order, steal, giving up, and the remains of a thread that ends.

const assert = require('assert')
const { agent } = require('../../lib/agent/find-agent')
const { HELD } = require('../../lib/agent/registers')
const { test } = require('../harness')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { hold, holding, startHolder, testLocks } = require('../fixtures/named-locks')
const { now, sleep, startWorker, until, words } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { locks } = api

const pendingCount = async () => (await locks.query()).pending.length

async function untilPending (count) {
  while (await pendingCount() !== count) await sleep(1)
}

const FREE = { mode: 'exclusive', ownerDied: false }
const READER = { mode: 'shared', ownerDied: false }
const FROM_DEAD = { mode: 'exclusive', ownerDied: true }

testLocks('one holder at a time, of any mix of threads, by request and requestSync; no update is lost', async t => {
  const TURNS = 300
  const [count, inside] = [words(1), words(1)]
  const body = async ({ api: { locks }, Atomics, data: { TURNS, count, inside, sync } }) => {
    const enter = (lock) => {
      if (Atomics.add(inside, 0, 1) !== 0) throw new Error('two holders')
      const value = count[0]
      for (let n = 0; n < 200; n++);
      count[0] = value + 1
      Atomics.sub(inside, 0, 1)
    }
    for (let n = 0; n < TURNS; n++) {
      if (sync) locks.requestSync('x', enter)
      else if (n % 2 === 0) await locks.request('x', enter)
      else await locks.request('x', async lock => { await undefined; enter(lock) })
    }
  }
  const threads = [true, true, false, false].map(sync => startWorker(t, { TURNS, count, inside, sync }, body))
  await body({ api, Atomics, data: { TURNS, count, inside, sync: false } })
  await Promise.all(threads.map(thread => thread.done()))
  assert.strictEqual(count[0], 5 * TURNS)
})

testLocks('readers of several threads are together, a writer is alone, nobody overtakes', async t => {
  const [a, b, c] = await Promise.all([startHolder(t), startHolder(t), startHolder(t)])
  assert.deepStrictEqual(await a.ask({ mode: 'shared' }), READER)
  assert.deepStrictEqual(await b.ask({ mode: 'shared' }, true), READER)
  const writer = c.ask({}, true)
  await untilPending(1)
  const reader = locks.request('x', { mode: 'shared' }, lock => lock.mode)
  assert.strictEqual(await locks.request('x', { mode: 'shared', ifAvailable: true }, lock => lock), null)
  const { held, pending } = await locks.query()
  const id = ({ thread }) => `${process.pid}-${thread.worker.threadId}`
  assert.deepStrictEqual(held.map(({ clientId }) => clientId), [id(a), id(b)])
  const line = [[id(c), 'exclusive'], [`${process.pid}-0`, 'shared']]
  assert.deepStrictEqual(pending.map(({ clientId, mode }) => [clientId, mode]), line)
  assert.deepStrictEqual(await a.release(), { result: 'released' })
  assert.strictEqual(await pendingCount(), 2)
  assert.deepStrictEqual(await b.releaseSync(), { result: 'released' })
  assert.deepStrictEqual(await writer, FREE)
  assert.strictEqual(await pendingCount(), 1)
  await c.releaseSync()
  assert.strictEqual(await reader, 'shared')
})

testLocks('steal across threads: a holder that awaits rejects at once, one that blocks when it returns', async t => {
  const [a, b] = await Promise.all([startHolder(t), startHolder(t)])
  await a.ask({ mode: 'shared' })
  await b.ask({ mode: 'shared' }, true)
  const waiting = locks.request('x', lock => lock.ownerDied)
  const thief = await holding('x', { steal: true })
  assert.strictEqual(thief.lock.ownerDied, false)
  assert.deepStrictEqual(await a.next(), { error: 'AbortError', code: 20 })
  assert.deepStrictEqual(await b.releaseSync(), { error: 'AbortError', code: 20 })
  assert.deepStrictEqual((await locks.query()).held.map(({ mode }) => mode), ['exclusive'])
  // And back again.
  const rejected = rejection(thief.promise)
  assert.deepStrictEqual(await a.ask({ steal: true }), FREE)
  assert.strictEqual((await rejected).name, 'AbortError')
  await a.release()
  assert.strictEqual(await waiting, false)
})

testLocks('abort and timeout in a line of several threads: those behind a writer that gives up move on', async t => {
  const [a, b] = await Promise.all([startHolder(t), startHolder(t)])
  assert.deepStrictEqual(await a.ask({ mode: 'shared' }), READER)
  for (const sync of [false, true]) {
    assert.deepStrictEqual(await b.ask({ timeout: 5 }, sync), { error: 'TimeoutError', code: 'ERR_TIMEOUT' })
  }
  const controller = new TinyController({ reason: 'the reason' })
  const aborted = rejection(locks.request('x', { signal: controller.signal }, () => {}))
  assert.strictEqual(await b.ask({ mode: 'shared', ifAvailable: true }), null)
  assert.deepStrictEqual(await b.release(), { result: 'released' })
  const reader = b.ask({ mode: 'shared' })
  await untilPending(2)
  controller.abort()
  assert.strictEqual(await aborted, 'the reason')
  assert.deepStrictEqual(await reader, READER)
  const late = a.ask({ timeout: 5 })
  const next = locks.request('x', { mode: 'shared' }, lock => lock.mode)
  assert.deepStrictEqual(await late, { error: 'TimeoutError', code: 'ERR_TIMEOUT' })
  assert.strictEqual(await next, 'shared')
  await Promise.all([a.release(), b.release()])
})

testLocks('a blocked thread is granted what a promise of another releases, and the other way round', async t => {
  const a = await startHolder(t)
  for (let n = 0; n < 20; n++) {
    const { release } = await holding('x')
    const granted = a.ask({}, true)
    await untilPending(1)
    release()
    assert.deepStrictEqual(await granted, FREE)
    const own = locks.request('x', { mode: 'shared' }, lock => lock.mode)
    await a.releaseSync()
    assert.strictEqual(await own, 'shared')
  }
})

for (const sync of [false, true]) {
  const when = sync ? 'in a callback that blocks' : 'while it holds'
  testLocks(`a thread that is terminated ${when}: the next one sees the death, and only that one`, async t => {
    const [a, b] = await Promise.all([startHolder(t), startHolder(t)])
    await a.ask({}, sync)
    const next = b.ask()
    await untilPending(1)
    const third = locks.request('x', lock => lock.ownerDied)
    await a.thread.terminate()
    assert.deepStrictEqual(await next, FROM_DEAD)
    await b.release()
    assert.strictEqual(await third, false)
  })
}

testLocks('the death of a holder is reported to a request that comes later, too', async t => {
  const a = await startHolder(t)
  await a.ask()
  await a.thread.terminate()
  assert.deepStrictEqual(await locks.query(), { held: [], pending: [] })
  assert.strictEqual(await locks.request('x', lock => lock.ownerDied), true)
  assert.strictEqual(await locks.request('x', lock => lock.ownerDied), false)
})

testLocks('the death of a reader is reported to nobody; nor that of a holder that had been robbed', async t => {
  const [a, b] = await Promise.all([startHolder(t), startHolder(t)])
  await a.ask({ mode: 'shared' })
  const next = locks.request('x', lock => lock.ownerDied)
  await a.thread.terminate()
  assert.strictEqual(await next, false)
  await b.ask()
  const stolen = locks.request('x', { steal: true }, async lock => {
    await b.thread.terminate()
    return lock.ownerDied
  })
  assert.strictEqual(await stolen, false)
  assert.strictEqual(await locks.request('x', lock => lock.ownerDied), false)
})

for (const sync of [false, true]) {
  testLocks(`a thread that is terminated while it ${sync ? 'blocks' : 'awaits'} leaves the line`, async t => {
    const [a, b] = await Promise.all([startHolder(t), startHolder(t)])
    await a.ask({ mode: 'shared' })
    b.ask({}, sync)
    await untilPending(1)
    const reader = locks.request('x', { mode: 'shared' }, lock => lock.ownerDied)
    await b.thread.terminate()
    // The reader was behind a writer that is gone.
    assert.strictEqual(await reader, false)
    assert.strictEqual(await pendingCount(), 0)
    await a.release()
  })
}

testLocks('what was granted to a thread that ended before it knew goes to the next', async t => {
  for (let n = 0; n < 10; n++) {
    const a = startWorker(t, ({ api: { locks }, busy, post }) => {
      locks.request('x', () => {})
      // Its event loop never runs again.
      post('asked')
      busy(1e6)
    })
    const mine = await holding('x', { steal: true })
    await a.next()
    await untilPending(1)
    const next = locks.request('x', () => 'granted')
    mine.release()
    await a.terminate()
    assert.strictEqual(await next, 'granted')
  }
})

test('requestSync: a thread does not wait for itself', async t => {
  const outcome = await startWorker(t, async ({ api: { locks } }) => {
    const codeOf = (fn) => {
      try {
        return fn()
      } catch (error) {
        return error.code
      }
    }
    const codes = []
    const exclusive = { mode: 'exclusive' }
    const shared = { mode: 'shared' }
    const within = (outer, name, inner, result) => {
      codes.push(locks.requestSync('x', outer, () => codeOf(() => locks.requestSync(name, inner, () => result))))
    }
    within(exclusive, 'x', exclusive, 'twice')
    within(shared, 'x', shared, 'readers')
    within(shared, 'x', exclusive, 'upgrade')
    within(exclusive, 'y', exclusive, 'another')
    await locks.request('x', () => codes.push(codeOf(() => locks.requestSync('x', () => 'in a request'))))
    codes.push(locks.requestSync('x', () => 'free'))
    return codes
  }).done()
  assert.deepStrictEqual(outcome, ['ERR_DEADLOCK', 'readers', 'ERR_DEADLOCK', 'another', 'ERR_DEADLOCK', 'free'])
})

test('requestSync gives and throws what its callback does, with the name free; a thenable is a TypeError', async t => {
  const outcome = await startWorker(t, ({ api: { locks } }) => {
    const seen = []
    const attempt = (callback, options = {}) => {
      try {
        seen.push(locks.requestSync('x', options, callback))
      } catch (error) {
        seen.push(error instanceof TypeError ? error.message.slice(0, 60) : error)
      }
      if (!locks.requestSync('x', { ifAvailable: true }, lock => lock !== null)) seen.push('not free')
    }
    attempt(lock => [lock.name, lock.mode, lock.ownerDied].join())
    attempt(lock => lock.mode, { mode: 'shared' })
    attempt(() => { throw 'thrown' }) // eslint-disable-line no-throw-literal
    attempt(async () => 1)
    attempt(() => ({ then () {} }))
    attempt(lock => locks.requestSync('x', { ifAvailable: true }, async () => 1))
    return seen
  }).done()
  const thenable = 'requestSync: callback must not return a promise, which a blocked thread cannot await'.slice(0, 60)
  assert.deepStrictEqual(outcome, ['x,exclusive,false', 'shared', 'thrown', thenable, thenable, thenable])
})

test('a lock that was granted and stolen before its thread heard of either is not begun', async t => {
  const flags = new Int32Array(new SharedArrayBuffer(12))
  const [HELD, PENDING, STOLEN] = [0, 1, 2]
  const worker = startWorker(t, { flags, HELD, PENDING, STOLEN }, async ({ api: { locks }, data }) => {
    const { flags, HELD, PENDING, STOLEN } = data
    locks.requestSync('x', () => {
      Atomics.store(flags, HELD, 1)
      Atomics.notify(flags, HELD)
      while (Atomics.load(flags, PENDING) === 0);
    })
    await locks.request('x', { steal: true }, () => {})
    Atomics.store(flags, STOLEN, 1)
  })
  await until(() => Atomics.load(flags, HELD) === 1)
  let began = false
  const request = locks.request('x', () => { began = true })
  Atomics.store(flags, PENDING, 1)
  // This thread's event loop stands still until both have happened.
  while (Atomics.load(flags, STOLEN) === 0);
  const error = await request.then(() => 'granted', error => error)
  assert.strictEqual(error.name, 'AbortError')
  assert.strictEqual(began, false)
  await worker.done()
  assert.deepStrictEqual(await locks.query(), { held: [], pending: [] })
})

test('a stolen lock leaves no entry in its thread, also if its callback never ends', async () => {
  for (let n = 0; n < 100; n++) locks.request('endless ' + n, () => new Promise(() => {})).catch(() => {})
  for (let n = 0; n < 100; n++) await locks.request('endless ' + n, { steal: true }, () => {})
  await new Promise(setImmediate)
  assert.deepStrictEqual(api.snapshot(), { held: [], waiting: [], cycles: [] })
  // Entries that had stayed would be those of locks at the same addresses.
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  assert.throws(() => lock.unlock(), { code: 'ERR_NOT_LOCKED' })
})

test('what is held after a first steal is found, too; no entry is left of what was stolen', async () => {
  const held = () => agent().native.words[HELD]
  const steal = (name) => locks.request(name, { steal: true }, () => {})
  await until(() => held() === 0, 'no entry is left of earlier tests')
  const robbed = (name) => holding(name).then(({ promise }) => ({ told: rejection(promise) }))
  const [kept, first] = [await robbed('kept'), await robbed('first')]
  await steal('first')
  await first.told
  // Their entries change places while some are released.
  const others = []
  for (let n = 0; n < 100; n++) {
    others[n] = await robbed('other ' + n)
    await locks.request('released', () => {})
  }
  for (const n of [50, 0, 99]) {
    await steal('other ' + n)
    assert.strictEqual((await others[n].told).name, 'AbortError')
  }
  // Released before this thread hears of the steal.
  const late = rejection(locks.request('late', () => {}))
  await Promise.all([steal('late'), late])
  await Promise.all([steal('kept'), kept.told].concat(others.map((other, n) => steal('other ' + n))))
  await Promise.all(others.map(other => other.told))
  await until(() => held() === 0, 'no entry is left')
})

test('what a steal costs the thread of the loser hardly grows with what that thread holds', async () => {
  const stolen = 200
  /**
   * Returns the milliseconds of a theft. The loser is told before the next one. A fourth of the thefts take less: a
   * busy machine interrupts the others only.
   */
  const cost = async (held) => {
    const losers = []
    for (let n = 0; n < held; n++) losers[n] = rejection(hold('cost ' + n, { mode: 'shared' }).promise)
    await new Promise(setImmediate)
    const times = []
    for (let n = 0; n < held; n++) {
      const start = now()
      await Promise.all([locks.request('cost ' + n, { steal: true }, () => {}), losers[n]])
      if (n < stolen) times.push(now() - start)
    }
    return times.sort((a, b) => a - b)[stolen / 4]
  }
  let [few, many] = [Infinity, Infinity]
  for (let n = 0; n < 3; n++) {
    few = Math.min(few, await cost(stolen))
    many = Math.min(many, await cost(20000))
  }
  // A theft looks for one number among those of all that is held, and does nothing else for each.
  assert.ok(many < 25 * few, `${many} ms beside many, ${few} ms beside few`)
})
