'use strict'

// What an install puts into another object changes nothing for a lock.
// subjects: export, force
// long: each subject has the same queue

// AsyncLock, as its documentation says: lock, unlock, timeouts, aborts. every-class/forms.test.js tests the behaviour
// that all classes share.

const assert = require('assert')
const asyncHooks = require('async_hooks')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api, entry, name: subject } = require('../subject')
const { MAJOR, busy, now, randomFrom, runChild, sleep, startWorker, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')
const toolbox = require('../fixtures/lock-toolbox')

const { TinyController, newLock, rejection, startLocker, surrounded, untilWaiters } = toolbox
const { AsyncLock, UnlockToken } = api

// ——— the class ———

test('the constants are the article\'s, and a lock has four bytes', () => {
  assert.strictEqual(AsyncLock.INDEX, 0)
  assert.strictEqual(AsyncLock.UNLOCKED, 0)
  assert.strictEqual(AsyncLock.LOCKED, 1)
  assert.strictEqual(AsyncLock.byteLength, 4)
  assert.throws(() => { AsyncLock.LOCKED = 7 }, TypeError)
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

// ——— tokens ———

test('lock.unlock() uses up the token', () => {
  const lock = newLock()
  const token = lock.tryLock()
  assert.strictEqual(lock.unlock(), undefined)
  assert.strictEqual(token.locked, false)
  assert.strictEqual(token.unlock(), false)
})

test('unlocking a free lock is an error', () => {
  const lock = newLock()
  assert.throws(() => lock.unlock(), { name: 'Error', code: 'ERR_NOT_LOCKED', message: /not held/ })
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
  const given = [[], [0], [-5], [{}], [{ timeout: undefined }], [{ timeout: 0 }]]
  for (const take of [() => lock.tryLock(), ...given.map(args => () => lock.lockIfAvailable(...args))]) {
    const token = take()
    assert.ok(token instanceof UnlockToken)
    assert.strictEqual(take(), null)
    token.unlock()
  }
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

test('blocking behind a claim that the thread itself awaits is ERR_DEADLOCK, too', async t => {
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
  const numbers = Array.from({ length: 200 }, (_, n) => n)
  const order = []
  const all = numbers.map(n => lock.lockAsync().then(token => { order.push(n); token.unlock() }))
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 200)
  token.unlock()
  await Promise.all(all)
  assert.deepStrictEqual([order, lock.locked], [numbers, false])
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
  // The first blocked thread behind a promise may go before it, if the promise's event loop gets no processor.
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
  const worker = startWorker(t, { sab: lock.sab, flags }, ({ api, Atomics, post, data: { sab, flags } }) => {
    const token = new api.AsyncLock(sab).lock()
    post('held')
    while (Atomics.load(flags, 0) === 0);
    token.unlock()
    Atomics.store(flags, 1, 1)
  })
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
  const worker = startWorker(t, { sab: lock.sab, flags, slowness }, async ({ api, Atomics, data, require }) => {
    const { sab, flags, slowness } = data
    const { TinyController } = require('./lock-toolbox')
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
  })
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
  const worker = startWorker(t, lock.sab, ({ api, post, require, data: sab }) => {
    const { TinyController } = require('./lock-toolbox')
    const lock = new api.AsyncLock(sab)
    const controller = new TinyController({ reason: 'abort' })
    const outcome = lock.lockAsync({ timeout: 2, signal: controller.signal }).catch(reason => reason)
    // The loop does not turn: only native code knows that the time is over.
    while (api.waiterCount(lock.i32a, 0) === 1);
    controller.abort()
    post('gave up')
    const token = lock.lock()
    return outcome.then(reason => `${reason} ${token.unlock()}`)
  })
  assert.strictEqual(await worker.next(), 'gave up')
  await untilWaiters(lock, 1)
  token.unlock()
  assert.strictEqual(await worker.done(), 'abort true')
  assert.strictEqual(lock.locked, false)
})

for (const [comes, inForce] of [['blocks for', true], ['blocks for', false], ['awaits', true], ['awaits', false]]) {
  const where = inForce ? 'on the package\'s queue' : 'beside the host\'s queue'
  test(`${where}: a thread that ${comes} it as the holder, which saw no waiter, unlocks is not forgotten`, {
    skip: subject !== 'export' && 'the package is in the worker before its Atomics can be replaced'
  }, async t => {
    const [MOMENT, LINED_UP] = [0, 1]
    const [REACHED, PASSED] = [1, 2]
    const lock = newLock()
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const locker = await startLocker(t, lock.sab)
    // The first of its Atomics on the lock's word has its effect only once a waiter is in the line. Where the word is
    // freed by a plain write and the fence of the host's `notify`, other threads need not see the write before the
    // fence.
    const holder = new Worker(`
      const { entry, inForce, flags, sab, MOMENT, LINED_UP, REACHED, PASSED } = require('worker_threads').workerData
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

// ——— executeLocked ———

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

test('main is not starved by workers that lock in a loop', async t => {
  const lock = newLock()
  const lockers = await Promise.all([0, 1].map(() => startLocker(t, lock.sab)))
  const counts = lockers.map(locker => locker.call('lockAndCount', 0, 1, 2))
  await until(() => lockers.every(({ flags }) => Atomics.load(flags, 2) > 0), 'they lock')
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
  const plain = async n => {
    outcomes.push(`${n} ${await Atomics.waitAsync(lock.i32a, 0, AsyncLock.LOCKED, 20000).value}`)
  }
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

const { notify } = global.Atomics
const noHost = (notify === undefined || notify[Symbol.for('atomics-waitasync')]) && 'the global Atomics is the subject'
test('waiters in the host\'s queue are notified where that is in use', { skip: noHost }, async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  for (let round = 0; round < 5; round++) {
    const token = lock.tryLock()
    const outcome = locker.call('hostWait', 0, AsyncLock.LOCKED, 20000)
    // The host's queue cannot be inspected. If the thread is not in it when the lock is unlocked, it does not begin to
    // wait either, since the word has changed.
    await sleep(20 * round)
    token.unlock()
    assert.ok(['ok', 'not-equal'].includes(await outcome))
  }
})

// ——— inspection ———

// ——— many ———

test('two thousand locks held at once, unlocked in any order: each goes to its claim', { timeout: 60000 }, async t => {
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

test('a release may settle more promises than a batch holds; hooks use locks', { timeout: 60000 }, async t => {
  const COUNT = 9000
  const sab = new SharedArrayBuffer(4 * COUNT)
  const locks = Array.from({ length: COUNT }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const locker = await startLocker(t, sab)
  const offsets = locks.map(lock => lock.byteOffset)
  await locker.call('lockMany', offsets)
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
    assert.deepStrictEqual([token.locked, token.ownerDied, locks[n].locked], [true, true, true])
    assert.deepStrictEqual([token.unlock(), locks[n].locked], [true, false])
  })
  own.forEach((lock, n) => assert.strictEqual(lock.locked, held[n].locked))
})

// ——— contexts ———

// ——— being interrupted ———

test('a time limit of vm that breaks lock() off leaves the line, and the lock is as good as before', async t => {
  const lock = newLock()
  const token = lock.tryLock()
  const worker = startWorker(t, lock.sab, async ({ api, data, sleep, require }) => {
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
  })
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
  // Unlocks the tokens where there is hardly any stack left: at the deepest point, and the others at each depth above.
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

/** Runs `fn` in a process that has to end well by itself; gives the lines it wrote. */
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

test('a lockAsync() keeps a worker alive that has nothing else to do', async t => {
  const sab = new SharedArrayBuffer(8)
  const lock = new AsyncLock(sab)
  const token = lock.tryLock()
  const worker = startWorker(t, sab, ({ api, data, Atomics }) => {
    new api.AsyncLock(data).lockAsync().then((token) => {
      Atomics.store(new Int32Array(data), 1, 7)
      token.unlock()
    })
  })
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
