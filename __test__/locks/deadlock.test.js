'use strict'
// timeout: 200

// Threads that block for each other in a cycle: exactly one of them gets an error, and the others go on.
// (core/tests/deadlock.rs has every order of their steps.)

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { untilWaiters } = require('../fixtures/family-toolbox')
const { memory } = require('../fixtures/lock-toolbox')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')

const { AsyncLock, RwLock, Semaphore } = api

/**
 * Starts a thread that takes one thing after another on command. It gives all back at the end or after an error. A step
 * is `[class, byteOffset or options, method, ...arguments]`; it sends 'done', or the error's facts.
 */
function actor (t, sab) {
  const worker = startWorker(t, sab, ({ api, data: sab, post, require }) => new Promise(resolve => {
    const { parentPort } = require('worker_threads')
    const { threadId } = require('worker_threads')
    const tokens = []
    const giveBack = () => { while (tokens.length > 0) tokens.pop().unlock() }
    post(threadId)
    parentPort.on('message', step => {
      if (step === 'end') {
        giveBack()
        parentPort.close()
        resolve()
        return
      }
      const [name, place, method, ...args] = step
      try {
        const thing = new api[name](sab, typeof place === 'number' ? { byteOffset: place } : place)
        const result = thing[method](...args)
        if (result && result.unlock) tokens.push(result)
        if (result && result.then) result.then(token => tokens.push(token))
        post('done')
      } catch (error) {
        const { code, name, message, cycle } = error
        giveBack()
        post({ code, name, message, cycle })
      }
    })
  }))
  const ready = worker.next()
  return {
    worker,
    ready,
    tell: (...step) => { worker.worker.postMessage(step) },
    async does (...step) {
      worker.worker.postMessage(step)
      assert.strictEqual(await worker.next(), 'done')
    },
    next: worker.next,
    async end () {
      worker.worker.postMessage('end')
      await worker.exited
    }
  }
}

async function actors (t, sab, count) {
  const all = Array.from({ length: count }, () => actor(t, sab))
  const ids = await Promise.all(all.map(({ ready }) => ready))
  return all.map((each, n) => Object.assign(each, { threadId: ids[n] }))
}

/** Waits until a thread has slept so long that others know it. */
const untilAsleep = (thread) =>
  until(() => api.snapshot().waiting.some(entry => entry.threadId === thread.threadId && entry.milliseconds > 20))

/**
 * Finds the thread of a cycle that finds it: the last to fall asleep. The others, in their order, go on once it has
 * ended.
 */
async function finderOf (threads) {
  const messages = threads.map(thread => thread.next())
  const finder = await new Promise((resolve, reject) => {
    messages.forEach((message, n) => message.then(({ code }) => { if (code) resolve(n) }, reject))
  })
  const error = await messages[finder]
  await threads[finder].end()
  return {
    thread: threads[finder],
    error,
    async othersGoOn () {
      let left = threads.map((_, n) => n).filter(n => n !== finder)
      while (left.length > 0) {
        const n = await Promise.race(left.map(n => messages[n].then(message => {
          assert.strictEqual(message, 'done')
          return n
        })))
        await threads[n].end()
        left = left.filter(other => other !== n)
      }
    }
  }
}

/** Checks the facts that hold for every cycle. */
function assertCycle (error, thread, length) {
  assert.strictEqual(error.code, 'ERR_DEADLOCK')
  const { cycle } = error
  assert.strictEqual(cycle.length, length, error.message)
  assert.strictEqual(cycle[0].threadId, thread.threadId)
  for (let n = 0; n < length; n++) {
    const { threadId, holds, waitsFor } = cycle[n]
    assert.deepStrictEqual([holds.threadId, waitsFor.threadId], [threadId, threadId])
    assert.strictEqual(waitsFor.id, cycle[(n + 1) % length].holds.id)
    assert.ok(waitsFor.blocked && waitsFor.milliseconds >= 0 && holds.milliseconds >= 0)
    assert.ok(error.message.includes(`\n  thread ${threadId} has been blocked for `), error.message)
  }
  assert.strictEqual(new Set(cycle.map(({ threadId }) => threadId)).size, length)
}

for (const count of [2, 3]) {
  test(`the one of ${count} threads that closes a cycle gets an error, and the others go on`, async t => {
    const sab = memory(64)
    const threads = await actors(t, sab, count)
    for (let n = 0; n < count; n++) await threads[n].does('AsyncLock', 4 * n, 'lock')
    for (let n = 0; n < count - 1; n++) {
      threads[n].tell('AsyncLock', 4 * (n + 1), 'lock')
      await untilWaiters(sab, 4 * (n + 1), 1)
    }
    threads[count - 1].tell('AsyncLock', 0, 'lock')
    const { error, thread, othersGoOn } = await finderOf(threads)
    assertCycle(error, thread, count)
    assert.ok(error.message.startsWith('lock: none of these threads could go on:\n'), error.message)
    assert.deepStrictEqual(error.cycle.map(({ holds }) => holds.kind), Array(count).fill('AsyncLock'))
    await othersGoOn()
    for (let n = 0; n < count; n++) assert.strictEqual(new AsyncLock(sab, { byteOffset: 4 * n }).locked, false)
  })

  test(`of ${count} threads that close a cycle at a time, one gets an error`, { timeout: 60000 }, async t => {
    const ROUNDS = 60
    const sab = memory(64)
    const play = ({ api, data: { sab, nth, count, ROUNDS } }) => {
      const locks = Array.from({ length: count }, (_, n) => new api.AsyncLock(sab, { byteOffset: 4 * n }))
      const barrier = new api.Barrier(sab, { parties: count, byteOffset: 32 })
      const errors = []
      for (let round = 0; round < ROUNDS; round++) {
        const own = locks[nth].lock()
        barrier.wait()
        try {
          locks[(nth + 1) % count].lock().unlock()
          errors.push(0)
        } catch (error) {
          if (error.code !== 'ERR_DEADLOCK' || error.cycle.length !== count) throw error
          errors.push(1)
        }
        own.unlock()
        barrier.wait()
      }
      return errors
    }
    const start = (_, nth) => startWorker(t, { sab, nth, count, ROUNDS }, play).done()
    const results = await Promise.all(Array.from({ length: count }, start))
    for (let round = 0; round < ROUNDS; round++) {
      const found = results.map(errors => errors[round])
      assert.strictEqual(found.reduce((sum, each) => sum + each, 0), 1, `round ${round}: ${found}`)
    }
  })
}

test('readers that want to write what the other reads are a cycle', async t => {
  const sab = memory(64)
  const [one, two] = await actors(t, sab, 2)
  await one.does('RwLock', 0, 'lockShared')
  await two.does('RwLock', 4, 'lockShared')
  one.tell('RwLock', 4, 'lock')
  await untilWaiters(sab, 4, 1)
  two.tell('RwLock', 0, 'lock')
  const { error, thread, othersGoOn } = await finderOf([one, two])
  assertCycle(error, thread, 2)
  const seen = error.cycle.map(({ holds, waitsFor }) => `${holds.kind} ${holds.mode} ${waitsFor.mode}`)
  assert.deepStrictEqual(seen, Array(2).fill('RwLock shared exclusive'))
  await othersGoOn()
})

test('a writer waits for each reader, and a reader for the writer ahead of it', async t => {
  const sab = memory(64)
  const [bystander, reader, writer, holder] = await actors(t, sab, 4)
  await bystander.does('RwLock', 0, 'lockShared')
  await reader.does('RwLock', 0, 'lockShared')
  await holder.does('AsyncLock', 4, 'lock')
  writer.tell('RwLock', 0, 'lock')
  await untilWaiters(sab, 0, 1)
  holder.tell('RwLock', 0, 'lockShared')
  await untilWaiters(sab, 0, 2)
  reader.tell('AsyncLock', 4, 'lock')
  const { error, thread, othersGoOn } = await finderOf([reader, holder, writer])
  assertCycle(error, thread, 3)
  const order = error.cycle.map(({ threadId }) => threadId)
  const first = order.indexOf(reader.threadId)
  const fromReader = order.slice(first).concat(order.slice(0, first))
  assert.deepStrictEqual(fromReader, [reader, holder, writer].map(({ threadId }) => threadId))
  const isBehind = `waiting for an RwLock (shared), behind thread ${writer.threadId}, which requests it (exclusive)`
  assert.ok(error.message.includes(isBehind), error.message)
  await bystander.end()
  await othersGoOn()
})

test('two threads hold permits of one semaphore, and both request more', async t => {
  const sab = memory(64)
  const [one, two] = await actors(t, sab, 2)
  const hold = amount => ['Semaphore', { permits: 4 }, 'hold', amount]
  await one.does(...hold(2))
  await two.does(...hold(2))
  one.tell(...hold(1))
  await untilWaiters(sab, 0, 1)
  two.tell(...hold(1))
  const { error, thread, othersGoOn } = await finderOf([one, two])
  assertCycle(error, thread, 2)
  const [{ threadId }, { threadId: other }] = error.cycle
  const waits = (thread, holder) => `\n  thread ${thread} has been blocked for T waiting for permits of a Semaphore, ` +
    `2 permits held for at least T by thread ${holder}`
  const message = error.message.replace(/\d+(\.\d)? m?s\b/g, 'T')
  const both = waits(threadId, other) + waits(other, threadId)
  assert.strictEqual(message, `hold: none of these threads could go on:${both}`)
  await othersGoOn()
})

test('a wait that has a timeout is in no cycle', async t => {
  const sab = memory(64)
  const [one, two] = await actors(t, sab, 2)
  await one.does('AsyncLock', 0, 'lock')
  await two.does('AsyncLock', 4, 'lock')
  one.tell('AsyncLock', 4, 'lock', { timeout: 300 })
  await untilWaiters(sab, 4, 1)
  two.tell('AsyncLock', 0, 'lock')
  assert.strictEqual((await one.next()).name, 'TimeoutError')
  assert.strictEqual(await two.next(), 'done')
})

test('a holder that dies while another thread waits for it is in no cycle', async t => {
  const sab = memory(64)
  const [one, two] = await actors(t, sab, 2)
  const third = new AsyncLock(sab, { byteOffset: 8 })
  const token = third.tryLock()
  await one.does('AsyncLock', 0, 'lock')
  await two.does('AsyncLock', 4, 'lock')
  two.tell('AsyncLock', 8, 'lock')
  one.tell('AsyncLock', 4, 'lock')
  await untilWaiters(sab, 8, 1)
  await untilWaiters(sab, 4, 1)
  await two.worker.terminate()
  assert.strictEqual(await one.next(), 'done')
  token.unlock()
})

test('permits have no holder: waiting for them is in no cycle', async t => {
  const sab = memory(64)
  const semaphore = new Semaphore(sab)
  semaphore.release(1)
  const [one, two] = await actors(t, sab, 2)
  await one.does('Semaphore', 0, 'acquire')
  await two.does('AsyncLock', 4, 'lock')
  two.tell('Semaphore', 0, 'acquire')
  await untilWaiters(sab, 0, 1)
  one.tell('AsyncLock', 4, 'lock')
  await untilWaiters(sab, 4, 1)
  semaphore.release(1)
  assert.strictEqual(await two.next(), 'done')
  await two.end()
  assert.strictEqual(await one.next(), 'done')
})

test('what a promise of a blocked thread is granted counts as held', async t => {
  const sab = memory(64)
  const lock = new RwLock(sab)
  const token = lock.tryLock()
  const [one, two] = await actors(t, sab, 2)
  await two.does('AsyncLock', 4, 'lock')
  await one.does('RwLock', 0, 'lockAsync')
  one.tell('AsyncLock', 4, 'lock')
  await untilWaiters(sab, 4, 1)
  two.tell('RwLock', 0, 'lock')
  await untilWaiters(sab, 0, 2)
  token.unlock()
  // One of them looks again before long.
  const { error, thread, othersGoOn } = await finderOf([one, two])
  assertCycle(error, thread, 2)
  await othersGoOn()
})

test('a thread in Condition.wait has released its lock; if it can never have it again, wait throws', async t => {
  const sab = memory(64)
  const waiting = startWorker(t, sab, ({ api, data: sab, post }) => {
    const [outer, inner] = [0, 4].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    const condition = new api.Condition(sab, { byteOffset: 8 })
    const kept = outer.lock()
    const token = inner.lock()
    try {
      condition.wait(token)
    } catch ({ code, cycle }) {
      post({ code, length: cycle.length, locked: token.locked })
    }
    kept.unlock()
  })
  await untilWaiters(sab, 8, 1)
  const [other] = await actors(t, sab, 1)
  await other.does('AsyncLock', 4, 'lock')
  other.tell('AsyncLock', 0, 'lock')
  await untilAsleep(other)
  const next = waiting.next()
  assert.strictEqual(new api.Condition(sab, { byteOffset: 8 }).notify(), 1)
  assert.deepStrictEqual(await next, { code: 'ERR_DEADLOCK', length: 2, locked: false })
  assert.strictEqual(await other.next(), 'done')
  await waiting.done()
})

test('a notification that such a wait cannot use goes to another waiter', async t => {
  const sab = memory(64)
  const wait = ({ api, data: { sab, outer }, post }) => {
    const kept = outer && new api.AsyncLock(sab, { byteOffset: 0 }).lock()
    const token = new api.AsyncLock(sab, { byteOffset: 4 }).lock()
    try {
      new api.Condition(sab, { byteOffset: 8 }).wait(token)
      token.unlock()
      post('notified')
    } catch ({ code }) {
      post(code)
      if (kept) kept.unlock()
    }
  }
  const first = startWorker(t, { sab, outer: true }, wait)
  await untilWaiters(sab, 8, 1)
  const second = startWorker(t, { sab, outer: false }, wait)
  await untilWaiters(sab, 8, 2)
  const [other] = await actors(t, sab, 1)
  await other.does('AsyncLock', 4, 'lock')
  other.tell('AsyncLock', 0, 'lock')
  await untilAsleep(other)
  assert.strictEqual(new api.Condition(sab, { byteOffset: 8 }).notify(1), 1)
  assert.strictEqual(await first.next(), 'ERR_DEADLOCK')
  assert.strictEqual(await other.next(), 'done')
  await other.end()
  assert.strictEqual(await second.next(), 'notified')
})

test('threads that take locks in any order, and die at any moment, never hang', { timeout: 180000 }, async t => {
  const THREADS = 4
  const sab = memory(256)
  const turns = new Int32Array(sab, 128, THREADS)
  const stop = new Int32Array(sab, 124, 1)
  const start = (nth, seed) => startWorker(t, { sab, nth, seed }, ({ api, data, Atomics, randomFrom }) => {
    const { sab, nth, seed } = data
    const random = randomFrom(seed)
    const [A, B] = [0, 4].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    const [C, D] = [8, 12].map(byteOffset => new api.RwLock(sab, { byteOffset }))
    const take = [A, B, C, D].map(lock => () => lock.lock()).concat([C, D].map(lock => () => lock.lockShared()))
    const below = most => Math.floor(random() * most)
    const words = new Int32Array(sab)
    let found = 0
    while (Atomics.load(words, 31) === 0) {
      const tokens = []
      try {
        for (let count = 1 + below(3); count > 0; count--) tokens.push(take[below(take.length)]())
      } catch (error) {
        if (error.code !== 'ERR_DEADLOCK') throw error
        if (error.cycle) found++
      }
      while (tokens.length > 0) tokens.splice(below(tokens.length), 1)[0].unlock()
      Atomics.add(words, 32 + nth, 1)
    }
    return found
  })
  let seed = Date.now() % 1e6
  console.log(`# seed ${seed}`)
  const workers = Array.from(turns, (_, nth) => start(nth, seed + nth))
  /** Waits until each thread has had ten turns more. On a busy machine that takes seconds. */
  const allGoOn = () => {
    const before = turns.slice()
    const had = () => turns.map((turn, nth) => turn - before[nth])
    const what = () => `all have had ten turns; they had ${had()}, ${JSON.stringify(api.snapshot())}`
    return until(() => had().every(turns => turns > 10), what)
  }
  for (let deaths = 0; deaths < size(12, 6); deaths++) {
    const nth = deaths % THREADS
    await allGoOn()
    api.snapshot()
    workers[nth].done().catch(() => {})
    await workers[nth].terminate()
    seed += THREADS
    workers[nth] = start(nth, seed)
  }
  for (let times = size(30, 10); times > 0; times--) await allGoOn()
  Atomics.store(stop, 0, 1)
  const found = await Promise.all(workers.map(worker => worker.done()))
  assert.ok(found.some(count => count > 0), `${found} cycles`)
  assert.deepStrictEqual(api.snapshot(), { held: [], waiting: [], cycles: [] })
})
