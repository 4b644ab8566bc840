'use strict'

// What an install puts into another object changes nothing for a lock.
// subjects: export, force

// AsyncLock, as its documentation says: lock, unlock, timeouts, aborts. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const asyncHooks = require('async_hooks')
const util = require('util')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api, entry, name: subject } = require('../subject')
const { MAJOR, busy, now, randomFrom, runChild, sleep, startWorker, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')
const { TinyController, newLock, rejection, startLocker, surrounded, untilWaiters } = require('../fixtures/lock-toolbox')

const { AsyncLock, UnlockToken } = api

// ——— the class ———

test('the constants are the article\'s, and a lock has four bytes', () => {
  assert.strictEqual(AsyncLock.INDEX, 0)
  assert.strictEqual(AsyncLock.UNLOCKED, 0)
  assert.strictEqual(AsyncLock.LOCKED, 1)
  assert.strictEqual(AsyncLock.byteLength, 4)
  assert.throws(() => { AsyncLock.LOCKED = 7 }, TypeError)
})

test('an instance is a view of one word, and zeroes are a free lock', () => {
  const sab = new SharedArrayBuffer(16)
  const lock = new AsyncLock(sab, { byteOffset: 8 })
  assert.strictEqual(lock.sab, sab)
  assert.ok(lock.i32a instanceof Int32Array)
  assert.strictEqual(lock.i32a.buffer, sab)
  assert.strictEqual(lock.i32a.byteOffset, 8)
  assert.strictEqual(lock.i32a.length, 1)
  assert.strictEqual(lock.locked, false)
})

test('the word is LOCKED or UNLOCKED, and the bytes around it are not written', async () => {
  const { lock, intact } = surrounded()
  const token = lock.tryLock()
  assert.strictEqual(lock.i32a[0], AsyncLock.LOCKED)
  const next = lock.lockAsync()
  assert.strictEqual(lock.i32a[0], AsyncLock.LOCKED)
  token.unlock()
  const nextToken = await next
  assert.strictEqual(lock.i32a[0], AsyncLock.LOCKED)
  nextToken.unlock()
  assert.strictEqual(lock.i32a[0], AsyncLock.UNLOCKED)
  intact()
})

test('neighbouring locks are different locks', () => {
  const sab = new SharedArrayBuffer(12)
  const [a, b, c] = [0, 4, 8].map(byteOffset => new AsyncLock(sab, { byteOffset }))
  const token = b.tryLock()
  assert.deepStrictEqual([a.locked, b.locked, c.locked], [false, true, false])
  assert.strictEqual(b.tryLock(), null)
  const others = [a.tryLock(), c.tryLock()]
  token.unlock()
  assert.deepStrictEqual([a.locked, b.locked, c.locked], [true, false, true])
  for (const other of others) assert.strictEqual(other.unlock(), true)
})

test('two instances on one word are one lock', async () => {
  const sab = new SharedArrayBuffer(4)
  const [a, b] = [new AsyncLock(sab), new AsyncLock(sab)]
  const token = a.tryLock()
  assert.strictEqual(b.locked, true)
  assert.strictEqual(b.tryLock(), null)
  const next = b.lockAsync()
  b.unlock()
  assert.strictEqual(token.locked, false)
  assert.strictEqual(token.unlock(), false)
  const nextToken = await next
  assert.strictEqual(a.locked, true)
  a.unlock()
  assert.strictEqual(nextToken.locked, false)
  assert.strictEqual(b.locked, false)
})

// ——— tokens ———

test('a token gives the lock up once', () => {
  const lock = newLock()
  const token = lock.tryLock()
  assert.ok(token instanceof UnlockToken)
  assert.strictEqual(token.locked, true)
  assert.strictEqual(token.ownerDied, false)
  assert.strictEqual(token.unlock(), true)
  assert.strictEqual(token.locked, false)
  assert.strictEqual(token.unlock(), false)
  assert.strictEqual(lock.locked, false)
})

test('a token that has been used does nothing to the next holder', () => {
  const lock = newLock()
  const first = lock.tryLock()
  first.unlock()
  const second = lock.tryLock()
  assert.strictEqual(first.unlock(), false)
  assert.strictEqual(first.locked, false)
  assert.strictEqual(second.locked, true)
  assert.strictEqual(lock.locked, true)
  second.unlock()
})

test('`using` gives the lock up', { skip: typeof Symbol.dispose !== 'symbol' && 'no Symbol.dispose here' }, () => {
  const lock = newLock()
  const token = lock.tryLock()
  assert.strictEqual(token[Symbol.dispose](), undefined)
  assert.strictEqual(lock.locked, false)
  token[Symbol.dispose]()
  const descriptor = Object.getOwnPropertyDescriptor(UnlockToken.prototype, Symbol.dispose)
  assert.strictEqual(descriptor.enumerable, false)
})

test('lock.unlock() uses up the token', () => {
  const lock = newLock()
  const token = lock.tryLock()
  assert.strictEqual(lock.unlock(), undefined)
  assert.strictEqual(token.locked, false)
  assert.strictEqual(token.unlock(), false)
})

test('unlocking a free lock is an error', () => {
  const lock = newLock()
  assert.throws(() => lock.unlock(), (error) => error instanceof Error && error.code === 'ERR_NOT_LOCKED' && /not held/.test(error.message))
  lock.tryLock().unlock()
  assert.throws(() => lock.unlock(), { code: 'ERR_NOT_LOCKED' })
  assert.strictEqual(lock.locked, false)
})

test('unlocking a lock that another thread holds is an error that names the thread, and changes nothing', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  assert.throws(() => lock.unlock(), (error) => {
    assert.ok(error instanceof Error)
    assert.strictEqual(error.code, 'ERR_NOT_LOCKED')
    assert.ok(error.message.includes(`held by thread ${locker.threadId}`), error.message)
    return true
  })
  assert.strictEqual(lock.locked, true)
  assert.strictEqual(await locker.call('unlock', 0), true)
  assert.strictEqual(lock.locked, false)

  const token = lock.tryLock()
  const error = await rejection(locker.call('unlockLock', 0))
  assert.strictEqual(error.code, 'ERR_NOT_LOCKED')
  assert.ok(/held by thread 0/.test(error.message), error.message)
  assert.strictEqual(token.locked, true)
  token.unlock()
})

test('any thread may unlock a lock that was taken through the bare word', async () => {
  const lock = newLock()
  Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
  assert.strictEqual(lock.tryLock(), null)
  const next = lock.lockAsync()
  lock.unlock()
  const token = await next
  assert.strictEqual(token.ownerDied, false)
  token.unlock()
  assert.strictEqual(lock.locked, false)
})

test('tokens survive the unlocking of others, in any order', () => {
  const random = randomFrom(7)
  const sab = new SharedArrayBuffer(4 * 50)
  const locks = Array.from({ length: 50 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const tokens = new Map()
  for (let step = 0; step < 5000; step++) {
    const n = Math.floor(random() * locks.length)
    if (tokens.has(n)) {
      assert.strictEqual(locks[n].tryLock(), null)
      if (random() < 0.5) assert.strictEqual(tokens.get(n).unlock(), true)
      else locks[n].unlock()
      tokens.delete(n)
    } else {
      tokens.set(n, locks[n].tryLock())
    }
    assert.strictEqual(locks[n].locked, tokens.has(n))
  }
  for (const [n, token] of tokens) {
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(locks[n].locked, false)
  }
})

// ——— blocking ———

test('main must not block by lockIfAvailable either', () => {
  const lock = newLock()
  for (const [call, instead] of [
    [() => lock.lockIfAvailable(1), /lockIfAvailable.*main thread.*lockAsync/],
    [() => lock.lockIfAvailable(Infinity), /main thread/],
    [() => lock.lockIfAvailable({ timeout: 1 }), /main thread/]
  ]) {
    assert.throws(call, (error) => {
      assert.ok(error instanceof TypeError, String(error))
      assert.ok(instead.test(error.message), error.message)
      return true
    })
  }
  assert.strictEqual(lock.locked, false)
})

test('main may take a free lock: tryLock(), lockIfAvailable(0)', () => {
  const lock = newLock()
  for (const take of [() => lock.tryLock(), () => lock.lockIfAvailable(), () => lock.lockIfAvailable(0), () => lock.lockIfAvailable(-5), () => lock.lockIfAvailable({}), () => lock.lockIfAvailable({ timeout: undefined }), () => lock.lockIfAvailable({ timeout: 0 })]) {
    const token = take()
    assert.ok(token instanceof UnlockToken)
    assert.strictEqual(take(), null)
    token.unlock()
  }
})

test('lock() blocks until the holder gives the lock up', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  const token = lock.tryLock()
  const result = locker.call('lock', 0)
  await untilWaiters(lock, 1)
  token.unlock()
  assert.deepStrictEqual(await result, { ownerDied: false, locked: true })
  assert.strictEqual(lock.tryLock(), null)
  assert.strictEqual(await locker.call('unlock', 0), true)
  assert.strictEqual(await locker.call('unlock', 0), false)
  assert.strictEqual(lock.locked, false)
})

test('lockIfAvailable(t) gives null when the time is over, never earlier, and leaves the line', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  const token = lock.tryLock()
  for (const given of [0, -1, 0.4, 1, 1.7, 5, 33.3, { timeout: 12 }, { timeout: -1 }, {}]) {
    const { token: got, elapsed } = await locker.call('timeInVain', 0, given)
    const { timeout = 0 } = typeof given === 'object' ? given : { timeout: given }
    assert.strictEqual(got, null)
    assert.ok(elapsed >= timeout, `${timeout} ms were over after ${elapsed} ms`)
    assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
  }
  token.unlock()
})

test('lockIfAvailable(t) gives the lock if it comes in time', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (const timeout of [20000, Infinity, { timeout: 20000 }, { timeout: Infinity }]) {
    const token = lock.tryLock()
    const result = locker.call('lockIfAvailable', 0, timeout)
    await untilWaiters(lock, 1)
    token.unlock()
    assert.deepStrictEqual(await result, { ownerDied: false, locked: true })
    await locker.call('unlock', 0)
  }
  assert.strictEqual(await locker.call('lockIfAvailable', 0, undefined).then(token => token.locked), true)
  await locker.call('unlock', 0)
})

test('three threads that block for it get it one at a time', async t => {
  const { sab, lock, intact } = surrounded()
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const workers = Array.from({ length: 3 }, () => startWorker(t, ({ api, data: { sab, counter } }) => {
    const lock = new api.AsyncLock(sab, { byteOffset: 8 })
    for (let n = 0; n < 20000; n++) {
      const token = lock.lock()
      counter[0]++
      token.unlock()
    }
  }, { sab, counter }))
  await Promise.all(workers.map(worker => worker.done()))
  assert.strictEqual(counter[0], 60000)
  assert.strictEqual(lock.locked, false)
  intact()
})

// ——— a thread that waits for itself ———

test('blocking for a lock that the thread holds already is ERR_DEADLOCK, and the lock stays held', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (const take of ['lock', 'lockAsync']) {
    await locker.call(take, 0)
    for (const args of [['lock', 0], ['lockIfAvailable', 0, 10000]]) {
      const error = await rejection(locker.call(...args))
      assert.strictEqual(error.code, 'ERR_DEADLOCK')
      assert.ok(error.message.startsWith(`${args[0]}: `), error.message)
      assert.ok(error.isError)
    }
    assert.strictEqual(await locker.call('tryLock', 0), null)
    assert.strictEqual(await locker.call('lockIfAvailable', 0, 0), null)
    assert.strictEqual(lock.locked, true)
    assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
    assert.strictEqual(await locker.call('unlock', 0), true)
    assert.strictEqual(lock.locked, false)
  }
})

test('blocking behind a claim that the thread itself awaits is ERR_DEADLOCK too, since that claim could not take its turn', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  const token = lock.tryLock()
  const awaited = locker.call('lockAsync', 0)
  await untilWaiters(lock, 1)
  const error = await rejection(locker.call('lock', 0))
  assert.strictEqual(error.code, 'ERR_DEADLOCK')
  assert.strictEqual(await locker.call('lockIfAvailable', 0, 20), null)
  token.unlock()
  assert.strictEqual((await awaited).locked, true)
  await locker.call('unlock', 0)
  // A claim that is over is no reason any more.
  assert.strictEqual((await locker.call('lock', 0)).locked, true)
  await locker.call('unlock', 0)
  const second = lock.tryLock()
  assert.strictEqual((await rejection(locker.call('lockAsync', 0, { timeout: 5 }))).name, 'TimeoutError')
  const blocked = locker.call('lock', 0)
  await untilWaiters(lock, 1)
  second.unlock()
  assert.strictEqual((await blocked).locked, true)
})

test('locks may be nested, and the same thread may hold a thousand others', async t => {
  const sab = new SharedArrayBuffer(8)
  const [outer, inner] = [new AsyncLock(sab), new AsyncLock(sab, { byteOffset: 4 })]
  const order = []
  await outer.executeLocked(async () => {
    order.push(outer.locked, inner.locked)
    await inner.executeLocked(() => { order.push(outer.locked, inner.locked) })
    order.push(outer.locked, inner.locked)
  })
  assert.deepStrictEqual(order, [true, false, true, true, true, false])
  assert.strictEqual(outer.locked, false)

  const locker = await startLocker(t, sab)
  await locker.call('lock', 0)
  await locker.call('lock', 4)
  const waits = [outer.lockAsync(), inner.lockAsync()]
  await locker.call('unlock', 4)
  await (await waits[1]).unlock()
  await locker.call('unlock', 0)
  await (await waits[0]).unlock()
})

// ——— awaiting ———

test('lockAsync() gives a token of a free lock, and the word is taken at once', async () => {
  const lock = newLock()
  const promise = lock.lockAsync()
  assert.ok(promise instanceof Promise)
  assert.strictEqual(lock.locked, true)
  const token = await promise
  assert.ok(token instanceof UnlockToken)
  assert.strictEqual(token.unlock(), true)
  for (const options of [undefined, {}, { timeout: undefined, signal: undefined }, { timeout: 0 }, { timeout: -1 }]) {
    (await lock.lockAsync(options)).unlock()
  }
})

test('the promises of one thread get the lock first come first served', async () => {
  const lock = newLock()
  const token = lock.tryLock()
  const order = []
  const all = Array.from({ length: 200 }, (_, n) => lock.lockAsync().then((token) => {
    order.push(n)
    assert.strictEqual(token.ownerDied, false)
    token.unlock()
  }))
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 200)
  token.unlock()
  await Promise.all(all)
  assert.deepStrictEqual(order, Array.from({ length: 200 }, (_, n) => n))
  assert.strictEqual(lock.locked, false)
})

test('blocked threads and promises stand in one line', async t => {
  const lock = newLock()
  const lockers = await Promise.all([0, 1].map(() => startLocker(t, lock.sab)))
  const order = []
  const token = lock.tryLock()
  const arrive = async (name, promise, unlock) => {
    await promise
    order.push(name)
    await unlock()
  }
  const all = []
  all.push(arrive('blocked 0', lockers[0].call('lock', 0), () => lockers[0].call('unlock', 0)))
  await untilWaiters(lock, 1)
  all.push(arrive('promise 0', lock.lockAsync(), () => lock.unlock()))
  all.push(arrive('blocked 1', lockers[1].call('lock', 0), () => lockers[1].call('unlock', 0)))
  await untilWaiters(lock, 3)
  all.push(arrive('promise 1', lock.lockAsync(), () => lock.unlock()))
  token.unlock()
  await Promise.all(all)
  // The first blocked thread behind a promise may go before it, where the promise's event loop gets no processor for long enough.
  assert.deepStrictEqual([order[0], order[3]], ['blocked 0', 'promise 1'])
  assert.deepStrictEqual(order.slice(1, 3).sort(), ['blocked 1', 'promise 0'])
})

test('many timeouts at once: none is early', async () => {
  const random = randomFrom(99)
  const lock = newLock()
  const token = lock.tryLock()
  await Promise.all(Array.from({ length: 1000 }, async () => {
    const timeout = random() * 50
    const start = now()
    const error = await rejection(lock.lockAsync({ timeout }))
    const elapsed = now() - start
    assert.strictEqual(error.name, 'TimeoutError')
    assert.ok(elapsed >= timeout, `${timeout} ms were over after ${elapsed} ms`)
  }))
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
  token.unlock()
})

test('a claim that was given up is not served', async () => {
  const lock = newLock()
  const token = lock.tryLock()
  const gaveUp = rejection(lock.lockAsync({ timeout: 5 }))
  const served = lock.lockAsync()
  assert.strictEqual((await gaveUp).name, 'TimeoutError')
  token.unlock()
  assert.strictEqual((await served).unlock(), true)
})

test('once the lock is held, an abort changes nothing, and no listener is left', async () => {
  const lock = newLock()
  const controller = new TinyController()
  const { signal } = controller
  const first = await lock.lockAsync({ signal })
  const awaited = lock.lockAsync({ signal })
  const timedOut = rejection(lock.lockAsync({ signal, timeout: 1 }))
  assert.ok(controller.listeners.size > 0)
  assert.strictEqual((await timedOut).name, 'TimeoutError')
  first.unlock()
  const token = await awaited
  assert.strictEqual(controller.listeners.size, 0)
  controller.abort()
  assert.strictEqual(token.locked, true)
  token.unlock()
})

test('a late abort does nothing to the claims that wait by then', async () => {
  const lock = newLock()
  const late = [0, 1, 2].map(() => new TinyController({ removes: false }))
  const first = lock.tryLock()
  const over = late.map(({ signal }, n) => lock.lockAsync(n === 2 ? { signal, timeout: 1 } : { signal }))
  assert.strictEqual((await rejection(over[2])).name, 'TimeoutError')
  first.unlock()
  ;(await over[0]).unlock()
  const token = await over[1]
  // As many again: they reuse the slots of the waits that are over.
  const waiting = [0, 1, 2].map(() => lock.lockAsync())
  for (const controller of late) controller.abort()
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 3)
  assert.strictEqual(token.locked, true)
  token.unlock()
  for (const promise of waiting) (await promise).unlock()
})

test('a timeout and a signal: the first one decides', async () => {
  const lock = newLock()
  const token = lock.tryLock()
  const controller = new TinyController({ reason: 'abort' })
  const late = rejection(lock.lockAsync({ signal: controller.signal, timeout: 60000 }))
  const early = rejection(lock.lockAsync({ signal: controller.signal, timeout: 2 }))
  assert.strictEqual((await early).name, 'TimeoutError')
  controller.abort()
  assert.strictEqual(await late, 'abort')
  token.unlock()
})

test('an abort that meets the wake passes it on to the next claim', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  const controller = new TinyController({ reason: 'abort' })
  const first = rejection(lock.lockAsync({ signal: controller.signal }))
  const second = lock.lockAsync()
  const unlocked = locker.call('unlock', 0)
  // The loop does not turn: the first claim does not see its wake before it gives up.
  while (Atomics.load(lock.i32a, 0) === AsyncLock.LOCKED);
  busy(3)
  controller.abort()
  assert.strictEqual(await first, 'abort')
  assert.strictEqual((await second).unlock(), true)
  assert.strictEqual(await unlocked, true)
  assert.strictEqual(lock.locked, false)
})

test('an abort that comes after the hand-over passes the lock on to the next claim', async t => {
  const lock = newLock()
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const worker = startWorker(t, ({ api, Atomics, post, data: { sab, flags } }) => {
    const token = new api.AsyncLock(sab).lock()
    post('held')
    while (Atomics.load(flags, 0) === 0);
    token.unlock()
    Atomics.store(flags, 1, 1)
  }, { sab: lock.sab, flags })
  assert.strictEqual(await worker.next(), 'held')
  const controller = new TinyController({ reason: 'abort' })
  const first = rejection(lock.lockAsync({ signal: controller.signal }))
  const second = lock.lockAsync()
  // The first claim tries in vain, so the lock is handed over to it.
  Atomics.notify(lock.i32a, 0, 1)
  await sleep(20)
  // The loop does not turn: the first promise has the lock and has not settled.
  Atomics.store(flags, 0, 1)
  while (Atomics.load(flags, 1) === 0);
  assert.strictEqual(lock.locked, true)
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 1)
  controller.abort()
  // At once, not in a later turn of the loop: this thread may be about to block.
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(await first, 'abort')
  assert.strictEqual((await second).unlock(), true)
  assert.strictEqual(lock.locked, false)
  await worker.done()
})

test('a worker that gives up a lock that is on its way may block for it', async t => {
  const lock = newLock()
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const worker = startWorker(t, async ({ api, Atomics, post, until, require, data: { sab, flags, slowness, toolbox } }) => {
    const { TinyController } = require(toolbox)
    const lock = new api.AsyncLock(sab)
    const controller = new TinyController({ reason: 'abort' })
    const outcome = lock.lockAsync({ signal: controller.signal }).catch(reason => reason)
    // It tries in vain, so the lock is handed over to it.
    Atomics.notify(lock.i32a, 0, 1)
    await new Promise(resolve => setTimeout(resolve, 20 * slowness))
    Atomics.store(flags, 0, 1)
    while (Atomics.load(flags, 1) === 0);
    // The lock has been handed over, and this loop has not turned since.
    controller.abort()
    const token = lock.lock()
    return outcome.then(reason => `${reason} ${token.unlock()}`)
  }, { sab: lock.sab, flags, slowness, toolbox: require.resolve('../fixtures/lock-toolbox') })
  const token = lock.tryLock()
  while (Atomics.load(flags, 0) === 0) await sleep(1)
  token.unlock()
  assert.strictEqual(lock.locked, true, 'handed over')
  Atomics.store(flags, 1, 1)
  assert.strictEqual(await worker.done(), 'abort true')
  assert.strictEqual(lock.locked, false)
})

test('a worker that gives up after its time, before its promise has settled, may block for the lock', async t => {
  const lock = newLock()
  const token = lock.tryLock()
  const worker = startWorker(t, ({ api, post, require, data: { sab, toolbox } }) => {
    const { TinyController } = require(toolbox)
    const lock = new api.AsyncLock(sab)
    const controller = new TinyController({ reason: 'abort' })
    const outcome = lock.lockAsync({ timeout: 2, signal: controller.signal }).catch(reason => reason)
    // The loop does not turn: only native code knows that the time is over.
    while (api.waiterCount(lock.i32a, 0) === 1);
    controller.abort()
    post('gave up')
    const token = lock.lock()
    return outcome.then(reason => `${reason} ${token.unlock()}`)
  }, { sab: lock.sab, toolbox: require.resolve('../fixtures/lock-toolbox') })
  assert.strictEqual(await worker.next(), 'gave up')
  await untilWaiters(lock, 1)
  token.unlock()
  assert.strictEqual(await worker.done(), 'abort true')
  assert.strictEqual(lock.locked, false)
})

for (const [comes, inForce] of [['blocks for', true], ['blocks for', false], ['awaits', true], ['awaits', false]]) {
  const where = inForce ? 'on the package\'s queue' : 'beside the host\'s queue'
  test(`a thread that ${comes} it after the holder has seen no waiter, and before it unlocks, is not forgotten, ${where}`, {
    skip: subject !== 'export' && 'the package is in the worker before its Atomics can be replaced'
  }, async t => {
    const [MOMENT, LINED_UP] = [0, 1]
    const [REACHED, PASSED] = [1, 2]
    const lock = newLock()
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const locker = await startLocker(t, lock.sab)
    // The first of its Atomics on the lock's word has its effect only once a waiter is in the line. Where the word is freed by a plain
    // write and the fence of the host's `notify`, other threads need not see the write before the fence.
    const holder = new Worker(`
      const { workerData: { entry, inForce, flags, sab, MOMENT, LINED_UP, REACHED, PASSED } } = require('worker_threads')
      const { load, store } = Atomics
      let armed = false
      for (const name of ['store', 'exchange', 'compareExchange', 'sub', 'and', 'notify']) {
        const original = Atomics[name]
        Atomics[name] = (...args) => {
          if (armed && args[0].buffer === sab) {
            armed = false
            const written = load(args[0], 0)
            if (name === 'notify') store(args[0], 0, ${AsyncLock.LOCKED})
            store(flags, MOMENT, REACHED)
            while (load(flags, LINED_UP) === 0);
            store(args[0], 0, written)
          }
          return original(...args)
        }
      }
      const { AsyncLock, install } = require(entry)
      if (inForce) install({ force: true })
      const token = new AsyncLock(sab).lock()
      armed = true
      token.unlock()
      if (armed) store(flags, MOMENT, PASSED)
    `, { eval: true, workerData: { entry, inForce, flags, sab: lock.sab, MOMENT, LINED_UP, REACHED, PASSED } })
    t.after(() => { holder.terminate() })
    await until(() => Atomics.load(flags, MOMENT) !== 0, 'it unlocks')
    if (Atomics.load(flags, MOMENT) === PASSED) {
      assert.ok(MAJOR < 15, 'it unlocks by other means than Atomics')
      t.skip('on this Node the native side unlocks')
    }
    const comer = comes === 'awaits' ? lock.lockAsync() : locker.call('lock', 0)
    await untilWaiters(lock, 1)
    Atomics.store(flags, LINED_UP, 1)
    // No later unlock would wake it.
    assert.strictEqual((await comer).ownerDied, false)
  })
}

test('a timeout that meets the wake or the hand-over loses nothing', async t => {
  const lock = newLock()
  const stop = 1
  const lockers = await Promise.all([0, 1].map(() => startLocker(t, lock.sab)))
  const counts = lockers.map(locker => locker.call('lockInALoop', 0, stop, 0.05))
  const random = randomFrom(4)
  let [served, gaveUp] = [0, 0]
  const end = now() + 400
  while (now() < end || served === 0 || gaveUp === 0) {
    await Promise.all(Array.from({ length: 8 }, async () => {
      try {
        const token = await lock.lockAsync({ timeout: random() * 2 })
        served++
        token.unlock()
      } catch (error) {
        assert.strictEqual(error.name, 'TimeoutError')
        gaveUp++
      }
    }))
  }
  for (const locker of lockers) locker.set(stop)
  await Promise.all(counts)
  const token = await lock.lockAsync({ timeout: 20000 })
  token.unlock()
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
})

// ——— executeLocked ———

test('executeLocked runs at once if the lock is free, with the token', async () => {
  const lock = newLock()
  let seen
  const promise = lock.executeLocked((...args) => { seen = args })
  assert.strictEqual(seen.length, 1)
  assert.ok(seen[0] instanceof UnlockToken)
  assert.ok(promise instanceof Promise)
  await promise
  assert.strictEqual(seen[0].locked, false)
  assert.strictEqual(lock.locked, false)
})

test('executeLocked gives the callback\'s result, and awaits it with the lock held', async () => {
  const lock = newLock()
  assert.strictEqual(await lock.executeLocked(() => 7), 7)
  assert.strictEqual(await lock.executeLocked(async () => {
    await sleep(2)
    assert.strictEqual(lock.locked, true)
    return 8
  }), 8)
  assert.strictEqual(await lock.executeLocked(() => ({ then: (resolve) => setTimeout(resolve, 1, 9) })), 9)
  assert.strictEqual(lock.locked, false)
})

test('executeLocked gives the lock up after a sync throw and after a rejection', async () => {
  const lock = newLock()
  const error = new Error('mine')
  assert.strictEqual(await rejection(lock.executeLocked(() => { throw error })), error)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(await rejection(lock.executeLocked(async () => { await sleep(1); throw error })), error)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(await rejection(lock.executeLocked(() => Promise.reject(undefined))), undefined) // eslint-disable-line prefer-promise-reject-errors
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(await lock.executeLocked(() => 'goes on'), 'goes on')
})

test('executeLocked waits for its turn, and calls run one after the other', async () => {
  const lock = newLock()
  const order = []
  const results = [1, 2, 3].map(n => lock.executeLocked(async () => {
    order.push(`begin ${n}`)
    await sleep(1)
    order.push(`end ${n}`)
    if (n === 2) throw n
    return n
  }))
  assert.deepStrictEqual(order, ['begin 1'])
  assert.strictEqual(await results[0], 1)
  assert.strictEqual(await rejection(results[1]), 2)
  assert.strictEqual(await results[2], 3)
  assert.deepStrictEqual(order, ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3'])
})

test('executeLocked: the callback may give the lock up itself', async () => {
  const lock = newLock()
  let other
  await lock.executeLocked((token) => {
    assert.strictEqual(token.unlock(), true)
    other = lock.tryLock()
    assert.ok(other)
  })
  assert.strictEqual(other.locked, true, 'the end of executeLocked took away the lock of another')
  other.unlock()
})

test('executeLocked: the callback must be a function', async () => {
  const lock = newLock()
  for (const callback of [undefined, null, 5, {}, 'f']) {
    const error = await rejection(lock.executeLocked(callback))
    assert.ok(error instanceof TypeError)
    assert.ok(/callback must be a function, not /.test(error.message), error.message)
  }
  assert.strictEqual(lock.locked, false)
})

test('executeLocked may be called within its callback', async () => {
  const lock = newLock()
  const order = []
  let inner
  await lock.executeLocked(() => {
    inner = lock.executeLocked(() => { order.push('inner') })
    order.push('outer')
  })
  await inner
  assert.deepStrictEqual(order, ['outer', 'inner'])
})

test('main and workers exclude each other: executeLocked and lock()', async t => {
  const { sab, lock, intact } = surrounded()
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const workers = Array.from({ length: 2 }, () => startWorker(t, ({ api, data: { sab, counter } }) => {
    const lock = new api.AsyncLock(sab, { byteOffset: 8 })
    for (let n = 0; n < 5000; n++) {
      const token = lock.lock()
      counter[0]++
      token.unlock()
    }
  }, { sab, counter }))
  for (let n = 0; n < 500; n++) {
    await lock.executeLocked(async () => {
      const before = counter[0]
      if (n % 10 === 0) await sleep(0)
      counter[0] = before + 1
    })
  }
  await Promise.all(workers.map(worker => worker.done()))
  assert.strictEqual(counter[0], 10500)
  assert.strictEqual(lock.locked, false)
  intact()
})

test('main is not starved by workers that lock in a loop', async t => {
  const lock = newLock()
  const lockers = await Promise.all([0, 1].map(() => startLocker(t, lock.sab)))
  const counts = lockers.map(locker => locker.call('lockInALoop', 0, 1, 0))
  let longest = 0
  for (let n = 0; n < 100; n++) {
    const start = now()
    await lock.executeLocked(() => { longest = Math.max(longest, now() - start) })
    await sleep(1)
  }
  for (const locker of lockers) locker.set(1)
  for (const count of await Promise.all(counts)) assert.ok(count > 100, `a worker had it ${count} times only`)
  assert.ok(longest < 2000, `main waited for ${longest} ms`)
})

// ——— plain waiters on the word ———

test('a plain wait and a plain waitAsync on the word are notified when the lock is given up', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  const token = lock.tryLock()
  const blocked = locker.call('wait', 0, AsyncLock.LOCKED, 20000)
  await untilWaiters(lock, 1)
  const promise = Atomics.waitAsync(lock.i32a, 0, AsyncLock.LOCKED, 20000).value
  token.unlock()
  assert.strictEqual(await blocked, 'ok')
  // One at a time: a notified waiter tries to lock, and notifies when it unlocks.
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 1)
  lock.tryLock().unlock()
  assert.strictEqual(await promise, 'ok')
})

test('plain waiters before and behind a claim are all notified in the end', async t => {
  const lock = newLock()
  const token = lock.tryLock()
  const outcomes = []
  const plain = (n) => Atomics.waitAsync(lock.i32a, 0, AsyncLock.LOCKED, 20000).value.then(outcome => outcomes.push(`${n} ${outcome}`))
  const all = [plain(1), plain(2)]
  const first = lock.lockAsync()
  all.push(plain(3))
  const second = lock.lockAsync()
  all.push(plain(4))
  token.unlock()
  ;(await first).unlock()
  ;(await second).unlock()
  await Promise.all(all)
  assert.deepStrictEqual(outcomes, ['1 ok', '2 ok', '3 ok', '4 ok'])
})

test('code that locks the bare word, frees it and notifies wakes the claims of AsyncLock', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (const count of [1, Infinity, undefined]) {
    Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
    const blocked = locker.call('lock', 0)
    await untilWaiters(lock, 1)
    const awaited = lock.lockAsync()
    Atomics.store(lock.i32a, 0, AsyncLock.UNLOCKED)
    Atomics.notify(lock.i32a, 0, count)
    assert.strictEqual((await blocked).locked, true)
    await locker.call('unlock', 0)
    ;(await awaited).unlock()
  }
})

const inHostsQueue = typeof global.Atomics.notify === 'function' && global.Atomics.notify[Symbol.for('atomics-waitasync')] === undefined
test('waiters in the host\'s queue are notified where that is in use', { skip: !inHostsQueue && 'the global Atomics is the subject' }, async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (let round = 0; round < 5; round++) {
    const token = lock.tryLock()
    const outcome = locker.call('hostWait', 0, AsyncLock.LOCKED, 20000)
    // The host's queue cannot be inspected. If the thread is not in it when the lock is unlocked, it does not begin to wait either, since
    // the word has changed.
    await sleep(20 * round)
    token.unlock()
    assert.ok(['ok', 'not-equal'].includes(await outcome))
  }
})

// ——— inspection ———

test('util.inspect tells the state, the holder\'s thread and the number of waiters', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  assert.strictEqual(util.inspect(lock), 'AsyncLock { locked: false, waiters: 0 }')
  const token = lock.tryLock()
  assert.strictEqual(util.inspect(lock), "AsyncLock { locked: true, holder: 'thread 0', waiters: 0 }")
  const blocked = locker.call('lock', 0)
  await untilWaiters(lock, 1)
  assert.strictEqual(util.inspect(lock), "AsyncLock { locked: true, holder: 'thread 0', waiters: 1 }")
  token.unlock()
  await blocked
  assert.strictEqual(util.inspect(lock), `AsyncLock { locked: true, holder: 'thread ${locker.threadId}', waiters: 0 }`)
  await locker.call('unlock', 0)
  Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
  assert.strictEqual(util.inspect(lock), "AsyncLock { locked: true, holder: 'unknown', waiters: 0 }")
  class MyLock extends AsyncLock {}
  assert.ok(util.inspect({ mine: new MyLock(lock.sab) }).includes('mine: MyLock { locked: true'))
})

// ——— many ———

test('two thousand locks held at once and unlocked in any order: each goes to its claim', { timeout: 60000 }, async t => {
  const COUNT = 2000
  const random = randomFrom(11)
  const sab = new SharedArrayBuffer(4 * COUNT)
  const locks = Array.from({ length: COUNT }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const locker = await startLocker(t, sab)
  const tokens = locks.map(lock => lock.tryLock())
  assert.ok(tokens.every(token => token !== null && token.locked))
  // The worker wants some of the odd ones, one after the other, and keeps them; main wants the even ones again.
  const wanted = locks.map((_, n) => n).filter(n => n % 6 === 3)
  const many = locker.call('lockMany', wanted.map(n => 4 * n))
  const again = locks.map((lock, n) => n % 2 === 0 ? lock.lockAsync() : null)
  for (const n of Array.from(locks.keys()).sort(() => random() - 0.5)) {
    assert.strictEqual(tokens[n].locked, true)
    tokens[n].unlock()
  }
  await Promise.all(again.map(async (promise, n) => {
    if (promise === null) return
    const token = await promise
    assert.strictEqual(token.locked, true)
    if (n % 4 === 0) await sleep(0)
    assert.strictEqual(locks[n].i32a[0], AsyncLock.LOCKED)
    token.unlock()
  }))
  assert.strictEqual(await many, wanted.length)
  locks.forEach((lock, n) => assert.strictEqual(lock.locked, n % 6 === 3, `lock ${n}`))
  for (const n of wanted.slice(0, 50)) assert.strictEqual(await locker.call('unlock', 4 * n), true)
})

test('one release may settle more promises than a batch holds, and hooks that run meanwhile may use locks', { timeout: 60000 }, async t => {
  const COUNT = 9000
  const sab = new SharedArrayBuffer(4 * COUNT)
  const locks = Array.from({ length: COUNT }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const locker = await startLocker(t, sab)
  await locker.call('lockMany', locks.map((_, n) => 4 * n))
  const own = Array.from({ length: 50 }, newLock)
  const held = own.map(lock => lock.tryLock())
  let resolved = 0
  const hook = asyncHooks.createHook({
    init () {},
    promiseResolve () {
      // Moves places in the table of held locks between two settlements of a batch.
      const n = resolved++ % own.length
      if (held[n].locked) held[n].unlock()
      else held[n] = own[n].tryLock()
    }
  })
  const all = locks.map(lock => lock.lockAsync())
  hook.enable()
  t.after(() => hook.disable())
  await locker.terminate()
  const tokens = await Promise.all(all)
  hook.disable()
  assert.ok(resolved >= COUNT, `${resolved} resolutions`)
  tokens.forEach((token, n) => {
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.ownerDied, true)
    assert.strictEqual(locks[n].locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(locks[n].locked, false)
  })
  own.forEach((lock, n) => assert.strictEqual(lock.locked, held[n].locked))
})

// ——— contexts ———

test('the asynchronous context is that of the caller', { skip: !asyncHooks.AsyncLocalStorage && 'no AsyncLocalStorage here' }, async t => {
  const storage = new asyncHooks.AsyncLocalStorage()
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (const contended of [false, true]) {
    const unlocked = contended
      ? locker.call('lock', 0).then(() => { setTimeout(() => locker.call('unlock', 0), 5) })
      : undefined
    await unlocked
    const results = await Promise.all(['a', 'b'].map(name => storage.run(name, async () => {
      const inside = await lock.executeLocked(async () => {
        const before = storage.getStore()
        await sleep(1)
        return [before, storage.getStore()]
      })
      const token = await lock.lockAsync()
      token.unlock()
      return inside.concat(storage.getStore())
    })))
    assert.deepStrictEqual(results, [['a', 'a', 'a'], ['b', 'b', 'b']])
  }
})

// ——— being broken off ———

test('a time limit of vm that breaks lock() off leaves the line, and the lock is as good as before', async t => {
  const lock = newLock()
  const token = lock.tryLock()
  const worker = startWorker(t, async ({ api, data, sleep, require }) => {
    const vm = require('vm')
    const lock = new api.AsyncLock(data)
    const [messages, counts] = [[], []]
    for (let n = 0; n < 3; n++) {
      try {
        vm.runInNewContext('lock.lock()', { lock }, { timeout: 40 })
      } catch (error) {
        messages.push(error.message)
      }
      // A vm time limit runs no code of the package: the thread leaves the line at its next call of the package.
      counts.push(api.waiterCount(lock.i32a, 0))
      await sleep(5)
    }
    return { messages, counts }
  }, lock.sab)
  const { messages, counts } = await worker.done()
  assert.strictEqual(messages.length, 3)
  assert.deepStrictEqual(counts, [0, 0, 0])
  for (const message of messages) assert.ok(/execution timed out/.test(message), message)
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
  token.unlock()
  const again = lock.tryLock()
  assert.strictEqual(again.ownerDied, false)
  again.unlock()
})

test('a stack overflow while a lock is unlocked loses neither the lock nor its claims', { timeout: 60000 }, async t => {
  const lock = newLock()
  const other = newLock()
  const stop = 1
  const locker = await startLocker(t, lock.sab)
  const count = locker.call('lockInALoop', 0, stop, 0)
  let overflows = 0
  let refused = 0
  // Unlocks the tokens where there is hardly any stack left: at the deepest point and then, at each depth above, the remaining ones.
  const dive = (tokens) => {
    try {
      dive(tokens)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      overflows++
    }
    for (const token of tokens) {
      if (!token.locked) continue
      try {
        assert.strictEqual(token.unlock(), true)
      } catch (error) {
        if (!(error instanceof RangeError)) throw error
        refused++
      }
    }
  }
  // The rest of the stack at the deepest point differs by the arguments that lie on it.
  const diveFrom = (tokens, padding) => (function () { dive(tokens) }.apply(null, Array(padding)))
  for (let padding = 0; padding < 60; padding++) {
    const token = await lock.lockAsync({ timeout: 20000 })
    const tokens = [other.tryLock(), token]
    assert.ok(tokens[0] !== null)
    diveFrom(tokens, padding)
    assert.deepStrictEqual(tokens.map(token => token.locked), [false, false])
    assert.strictEqual(other.locked, false)
    assert.throws(() => other.unlock(), { code: 'ERR_NOT_LOCKED' })
  }
  assert.ok(overflows > 0)
  // Where V8 has built unlock() into its caller, it needs no stack of its own, and none of them may have been refused.
  console.log(`# refused ${refused} times`)
  locker.set(stop)
  assert.ok(await count >= 0)
  const token = await lock.lockAsync({ timeout: 20000 })
  token.unlock()
  assert.strictEqual(lock.locked, false)
})

// ——— the event loop ———

/** Runs `fn` in a process of its own, which has to end by itself and without an error; gives the lines it wrote. */
async function linesOf (t, fn) {
  const { code, signal, lines, stderr } = await runChild(t, fn)
  assert.strictEqual(stderr, '')
  assert.strictEqual(signal, null)
  assert.strictEqual(code, 0)
  return lines
}

test('a lockAsync() with a timeout keeps the process alive until that is over', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say, now }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    const start = now()
    lock.lockAsync({ timeout: 120 }).catch(error => say(`${error.name} ${now() - start >= 120}`))
  }), ['TimeoutError true'])
})

test('a lockAsync() that no thread can settle any more does not keep the process alive, which says so', async t => {
  const { code, lines, stderr } = await runChild(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    lock.lockAsync().then(() => say('granted'))
    process.on('exit', () => say('ended'))
  })
  assert.strictEqual(code, 0)
  assert.deepStrictEqual(lines, ['ended'])
  assert.ok(stderr.includes('ATOMICS_WAITASYNC_PENDING'), stderr)
})

test('beforeExit is not emitted while a lock is on its way from one promise of a thread to another', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    let ran = 0
    for (let n = 0; n < 30; n++) {
      lock.executeLocked(async () => {
        await new Promise(resolve => n % 2 === 0 ? setImmediate(resolve) : setTimeout(resolve, 1))
        ran++
      })
    }
    process.on('beforeExit', () => say(ran))
  }), ['30'])
})

test('a lockAsync() keeps main alive while a worker holds the lock', async t => {
  assert.deepStrictEqual(await linesOf(t, async ({ api, say, startWorker }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const worker = startWorker(async ({ api, data, post, sleep }) => {
      const token = new api.AsyncLock(data).lock()
      post('held')
      await sleep(150)
      token.unlock()
      await sleep(100000)
    }, lock.sab)
    await worker.next()
    // Nothing else holds the loop.
    worker.worker.unref()
    const token = await lock.lockAsync()
    say('granted')
    token.unlock()
  }), ['granted'])
})

test('a lockAsync() keeps a worker alive that has nothing else to do', async t => {
  const sab = new SharedArrayBuffer(8)
  const lock = new AsyncLock(sab)
  const token = lock.tryLock()
  const worker = startWorker(t, ({ api, data, Atomics }) => {
    new api.AsyncLock(data).lockAsync().then((token) => {
      Atomics.store(new Int32Array(data), 1, 7)
      token.unlock()
    })
  }, sab)
  await worker.done()
  let exited = false
  worker.exited.then(() => { exited = true })
  await untilWaiters(lock, 1)
  await sleep(100)
  assert.strictEqual(exited, false)
  token.unlock()
  await worker.exited
  assert.strictEqual(new Int32Array(sab)[1], 7)
  assert.strictEqual(lock.locked, false)
})
