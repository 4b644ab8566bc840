'use strict'

// What an install puts into another object changes nothing for a lock.
// subjects: export, force
// long: it starts hundreds of threads

// A lock whose holder ends goes to the next claim, whose token says ownerDied.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { now, runChild, sleep, startWorker, until, untilRetried } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')
const slowness = require('../fixtures/slowness')
const {
  TinyController,
  memory,
  newLock,
  rejection,
  startLocker,
  surrounded,
  untilWaiters
} = require('../fixtures/lock-toolbox')

const { AsyncLock } = api

/** How many threads are terminated at moments that are not known. */
const ROUNDS = size(12, 6)

/** The ways a thread may end. Each resolves when it has. */
const deaths = {
  'terminate()': async locker => {
    await locker.terminate()
  },
  'process.exit()': async locker => {
    locker.call('exit', 3)
    assert.strictEqual(await locker.exited, 3)
  },
  'an uncaught exception': async locker => {
    locker.call('throwLater')
    assert.strictEqual(await locker.exited, 1)
    assert.ok(/on purpose/.test(locker.failure().message))
  },
  'having nothing left to do': async locker => {
    await locker.call('end')
    assert.strictEqual(await locker.exited, 0)
  },
  'terminate() while it runs JavaScript': async locker => {
    locker.call('spin')
    await sleep(20)
    await locker.terminate()
  }
}

for (const way of Object.keys(deaths)) {
  const die = deaths[way]

  test(`${way}: without waiters, the next to take the lock is told, and the one after it is not`, async t => {
    const { sab, lock, intact } = surrounded()
    const locker = await startLocker(t, sab)
    assert.strictEqual((await locker.call('lock', 8)).ownerDied, false)
    await die(locker)
    assert.strictEqual(lock.locked, false)
    const heir = lock.tryLock()
    assert.strictEqual(heir.ownerDied, true)
    heir.unlock()
    const next = lock.tryLock()
    assert.strictEqual(next.ownerDied, false)
    next.unlock()
    assert.strictEqual(heir.ownerDied, true)
    intact()
  })

  test(`${way}: a promise that waits gets the lock and is told`, async t => {
    const { sab, lock, intact } = surrounded()
    const locker = await startLocker(t, sab)
    await locker.call('lock', 8)
    const [first, second] = [lock.lockAsync(), lock.executeLocked(token => token.ownerDied)]
    await die(locker)
    const token = await first
    assert.strictEqual(token.ownerDied, true)
    assert.strictEqual(token.locked, true)
    assert.strictEqual(lock.locked, true)
    token.unlock()
    assert.strictEqual(await second, false)
    assert.strictEqual(lock.locked, false)
    intact()
  })

  test(`${way}: a blocked thread gets the lock and is told`, async t => {
    const lock = newLock()
    const [locker, other] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
    await locker.call('lock', 0)
    const result = other.call('lock', 0)
    await untilWaiters(lock, 1)
    await die(locker)
    assert.deepStrictEqual(await result, { ownerDied: true, locked: true })
    assert.strictEqual(await other.call('unlock', 0), true)
    assert.strictEqual(lock.tryLock().ownerDied, false)
  })
}

test('the first claim gets the lock, blocking or awaiting, and no other one sees the death', async t => {
  const lock = newLock()
  const [locker, blocked] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
  await locker.call('lock', 0)
  const first = blocked.call('lock', 0)
  await untilWaiters(lock, 1)
  const second = lock.lockAsync()
  await locker.terminate()
  assert.strictEqual((await first).ownerDied, true)
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 1)
  await blocked.call('unlock', 0)
  const token = await second
  assert.strictEqual(token.ownerDied, false)
  token.unlock()
})

for (const take of [
  ['tryLock', 0], ['lockIfAvailable', 0, 0], ['lockIfAvailable', 0, 10000], ['lock', 0], ['lockAsync', 0],
  ['lockAsync', 0, { timeout: 0 }]
]) {
  test(`the next holder sees the death: ${take[0]}(${take
    .slice(2)
    .map(each => JSON.stringify(each))
    .join()}) in a worker`, async t => {
    const lock = newLock()
    const [locker, other] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
    await locker.call(...take)
    await locker.terminate()
    assert.deepStrictEqual(await other.call(...take), { ownerDied: true, locked: true })
    await other.call('unlock', 0)
    assert.deepStrictEqual(await other.call(...take), { ownerDied: false, locked: true })
  })
}

test('the next holder sees the death: tryLock, lockIfAvailable, lockAsync and executeLocked on main', async t => {
  const lock = newLock()
  for (const take of [
    () => lock.tryLock(),
    () => lock.lockIfAvailable(0),
    () => lock.lockAsync(),
    () => lock.executeLocked(token => ({ ownerDied: token.ownerDied, unlock () {} }))
  ]) {
    const locker = await startLocker(t, lock.sab)
    await locker.call('lock', 0)
    await locker.terminate()
    for (const ownerDied of [true, false]) {
      const token = await take()
      assert.strictEqual(token.ownerDied, ownerDied)
      token.unlock()
    }
  }
})

test('locks of dead holders do not confuse one another', async t => {
  const sab = memory(40)
  const locks = Array.from({ length: 10 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const lockers = await Promise.all([0, 1, 2].map(() => startLocker(t, sab)))
  await lockers[0].call('lockMany', [0, 12, 24])
  await lockers[1].call('lockMany', [4, 16, 28])
  await lockers[2].call('lockMany', [8, 20, 32])
  await lockers[2].call('unlock', 20)
  await lockers[0].terminate()
  await lockers[2].terminate()
  const told = locks.map((lock) => {
    const token = lock.tryLock()
    return token === null ? 'held' : token.ownerDied
  })
  assert.deepStrictEqual(told, [true, 'held', true, true, 'held', false, true, 'held', true, false])
  await lockers[1].terminate()
  assert.deepStrictEqual([1, 4, 7].map(n => locks[n].tryLock().ownerDied), [true, true, true])
})

test('a thread that gave its locks up before it ended leaves nothing behind', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  await locker.call('unlock', 0)
  await locker.call('lock', 0)
  await locker.call('unlockLock', 0)
  await locker.terminate()
  const token = lock.tryLock()
  assert.strictEqual(token.ownerDied, false)
  token.unlock()
})

test(
  'two thousand locks held by a terminated thread: each goes to its first claim, or is free',
  { timeout: 60000 },
  async t => {
    const COUNT = 2000
    const sab = memory(4 * COUNT)
    const locks = Array.from({ length: COUNT }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
    const locker = await startLocker(t, sab)
    await locker.call(
      'lockMany',
      locks.map((_, n) => 4 * n)
    )
    const waits = locks.filter((_, n) => n % 2 === 0).map(lock => lock.lockAsync())
    await locker.terminate()
    const tokens = await Promise.all(waits)
    assert.ok(tokens.every(token => token.ownerDied && token.locked))
    locks.forEach((lock, n) => {
      assert.strictEqual(lock.locked, n % 2 === 0)
      const token = lock.tryLock()
      assert.strictEqual(token === null, n % 2 === 0)
      if (token !== null) {
        assert.strictEqual(token.ownerDied, true)
        token.unlock()
      }
    })
    for (const token of tokens) token.unlock()
  }
)

// ——— death of one that was granted the lock and never ran ———

test('a thread that awaits the lock is woken and ends before its loop turns: the next claim gets the lock', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  const token = lock.tryLock()
  locker.call('awaitWithoutTurning', 0, 2)
  await locker.untilSet(1)
  await untilWaiters(lock, 1)
  const next = lock.lockAsync()
  token.unlock()
  // It is not overtaken: the lock is free, and it is the turn of the other claim.
  await sleep(20)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(locker.seen(), 0)
  await locker.terminate()
  // An event loop that is being closed may still turn, but runs no JavaScript.
  const nextToken = await next
  assert.strictEqual(nextToken.locked, true)
  nextToken.unlock()
  assert.strictEqual(locker.seen(), 0)
  const after = lock.tryLock()
  assert.strictEqual(after.ownerDied, false)
  after.unlock()
})

for (const waiters of ['nobody', 'a promise', 'a blocked thread']) {
  test(`the lock is handed over to a thread that ends before its loop turns; ${waiters} waits behind it`, async t => {
    const lock = newLock()
    const [locker, other] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
    const token = lock.tryLock()
    locker.call('awaitWithoutTurning', 0, 2, true)
    await locker.untilSet(1)
    await untilWaiters(lock, 1)
    const next =
      waiters === 'a promise' ? lock.lockAsync() : waiters === 'a blocked thread' ? other.call('lock', 0) : undefined
    if (next) await untilWaiters(lock, 2)
    token.unlock()
    assert.strictEqual(lock.locked, true, 'handed over')
    await untilWaiters(lock, next ? 1 : 0)
    assert.strictEqual(locker.seen(), 0)
    await locker.terminate()
    const heir = next ? await next : lock.tryLock()
    assert.strictEqual(heir.ownerDied, true)
    assert.strictEqual(locker.seen(), 0)
    if (waiters === 'a blocked thread') await other.call('unlock', 0)
    else heir.unlock()
    const after = lock.tryLock()
    assert.strictEqual(after.ownerDied, false)
    after.unlock()
  })
}

test(
  'a blocked thread that is terminated at the moment it gets the lock passes it on',
  { timeout: 120000 },
  async t => {
    const lock = newLock()
    let died = 0
    for (let round = 0; round < ROUNDS; round++) {
      const locker = await startLocker(t, lock.sab)
      const token = lock.tryLock()
      locker.call('lock', 0)
      await untilWaiters(lock, 1)
      const next = lock.lockAsync()
      // None of the three orders may lose the lock.
      if (round % 3 === 0) token.unlock()
      const exited = locker.terminate()
      if (round % 3 === 1) token.unlock()
      if (round % 3 === 2) setTimeout(() => token.unlock(), round)
      const nextToken = await next
      if (nextToken.ownerDied) died++
      await exited
      nextToken.unlock()
      const after = lock.tryLock()
      assert.strictEqual(after.ownerDied, false)
      after.unlock()
      assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
    }
    assert.ok(died <= ROUNDS)
  }
)

test('a thread that ends while it waits, blocked or not, leaves the line, and does not count as a holder', async t => {
  const lock = newLock()
  const lockers = await Promise.all([0, 1].map(() => startLocker(t, lock.sab)))
  const token = lock.tryLock()
  lockers[0].call('lock', 0)
  lockers[1].call('lockAsync', 0)
  await untilWaiters(lock, 2)
  const next = lock.lockAsync()
  await Promise.all(lockers.map(locker => locker.terminate()))
  assert.strictEqual(api.waiterCount(lock.i32a, 0), 1)
  token.unlock()
  const nextToken = await next
  assert.strictEqual(nextToken.ownerDied, false)
  nextToken.unlock()
})

test('a thread that takes over the lock of a dead holder and dies too leaves it to the next claim', async t => {
  const lock = newLock()
  const [first, second] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
  await first.call('lock', 0)
  const inherited = second.call('lock', 0)
  await untilWaiters(lock, 1)
  const last = lock.lockAsync()
  await first.terminate()
  assert.strictEqual((await inherited).ownerDied, true)
  await second.terminate()
  const token = await last
  assert.strictEqual(token.ownerDied, true)
  token.unlock()
  assert.strictEqual(lock.tryLock().ownerDied, false)
})

test('a claim that was given up gets no lock of a dead holder', async t => {
  const lock = newLock()
  const locker = await startLocker(t, lock.sab)
  await locker.call('lock', 0)
  const controller = new TinyController({ reason: 'abort' })
  const aborted = rejection(lock.lockAsync({ signal: controller.signal }))
  const timedOut = rejection(lock.lockAsync({ timeout: 5 }))
  const heir = lock.lockAsync()
  controller.abort()
  assert.strictEqual(await aborted, 'abort')
  assert.strictEqual((await timedOut).name, 'TimeoutError')
  await locker.terminate()
  assert.strictEqual((await heir).ownerDied, true)
})

for (const how of ['handed over', 'free, and its nudge']) {
  test(`an heir that is aborted when the lock is ${how} on its way, passes it on`, async t => {
    const lock = newLock()
    const flags = new Int32Array(new SharedArrayBuffer(4))
    const worker = startWorker(t, { sab: lock.sab, flags }, ({ api, Atomics, post, data: { sab, flags } }) => {
      new api.AsyncLock(sab).lock()
      post('held')
      while (Atomics.load(flags, 0) === 0);
      process.exit()
    })
    await worker.next()
    const controller = new TinyController({ reason: 'abort' })
    const aborted = rejection(lock.lockAsync({ signal: controller.signal }))
    const next = lock.lockAsync()
    if (how === 'handed over') {
      // It tries in vain, so the lock is handed over to it.
      Atomics.notify(lock.i32a, 0, 1)
      await untilRetried()
    }
    Atomics.store(flags, 0, 1)
    // The loop does not turn while the worker dies: the grant comes first, and the abort after it.
    const start = now()
    const isOver = () => how === 'handed over' ? api.waiterCount(lock.i32a, 0) === 1 : !lock.locked
    while (!isOver()) assert.ok(now() - start < slowness * 20000, 'the worker dies')
    assert.strictEqual(lock.locked, how === 'handed over')
    controller.abort()
    assert.strictEqual(await aborted, 'abort')
    const token = await next
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.ownerDied, true, 'the death got lost with the one who gave up')
    token.unlock()
    assert.strictEqual(lock.tryLock().ownerDied, false)
  })
}

// ——— plain waiters and the bare word ———

test('a plain waiter is notified when the holder dies', async t => {
  const lock = newLock()
  const [locker, other] = await Promise.all([startLocker(t, lock.sab), startLocker(t, lock.sab)])
  await locker.call('lock', 0)
  const blocked = other.call('wait', 0, AsyncLock.LOCKED, 20000)
  await untilWaiters(lock, 1)
  await locker.terminate()
  assert.strictEqual(await blocked, 'ok')
  assert.strictEqual(lock.tryLock().ownerDied, true)
})

test('a lock that was taken through the bare word has no holder that could die', async t => {
  const lock = newLock()
  const worker = startWorker(t, lock.sab, ({ Atomics, data }) => { Atomics.store(new Int32Array(data), 0, 1) })
  await worker.done()
  await worker.exited
  assert.strictEqual(lock.locked, true)
  assert.strictEqual(lock.tryLock(), null)
  lock.unlock()
  assert.strictEqual(lock.tryLock().ownerDied, false)
})

// ——— acts of the holder ———

test('executeLocked in a thread that ends in its callback', async t => {
  const lock = newLock()
  const worker = startWorker(t, lock.sab, ({ api, data, post }) => {
    new api.AsyncLock(data).executeLocked(async () => {
      post('inside')
      await new Promise(() => setInterval(() => {}, 1000))
    })
    return new Promise(() => {})
  })
  await worker.next()
  const heir = lock.executeLocked(token => token.ownerDied)
  worker.terminate()
  assert.strictEqual(await heir, true)
  assert.strictEqual(lock.locked, false)
})

test(
  'a thread that is terminated in a loop of lock and unlock never leaves the lock held',
  { timeout: 120000 },
  async t => {
    const { sab, lock, intact } = surrounded()
    let inherited = 0
    for (let round = 0; round < ROUNDS; round++) {
      const locker = await startLocker(t, sab)
      locker.call('lockInALoop', 8, 1, 0)
      await until(() => lock.locked, 'the loop runs')
      // With a claim in the line and without, since the native code differs.
      const next = round % 2 === 0 ? lock.lockAsync() : undefined
      await sleep(round % 5)
      await locker.terminate()
      const token = next ? await next : lock.tryLock()
      assert.ok(token !== null, 'held by nobody, and locked')
      if (token.ownerDied) inherited++
      token.unlock()
      const after = lock.tryLock()
      assert.strictEqual(after.ownerDied, false)
      after.unlock()
      assert.strictEqual(api.waiterCount(lock.i32a, 0), 0)
    }
    assert.ok(inherited <= ROUNDS)
    intact()
  }
)

test('a worker\'s own workers and locks: the death of the parent is theirs as well', async t => {
  const lock = newLock()
  const parent = startWorker(t, lock.sab, async ({ api, data, post, require, subject }) => {
    const { Worker } = require('worker_threads')
    const child = new Worker(`
      const { workerData } = require('worker_threads')
      new (require(workerData.entry).AsyncLock)(workerData.sab).lock()
      setInterval(() => {}, 1000)
    `, { eval: true, workerData: { entry: subject.entry, sab: data } })
    child.on('error', error => { throw error })
    const lock = new api.AsyncLock(data)
    while (!lock.locked) await new Promise(resolve => setTimeout(resolve, 1))
    post('held')
    return new Promise(() => {})
  })
  await parent.next()
  const heir = lock.lockAsync()
  await parent.terminate()
  assert.strictEqual((await heir).ownerDied, true)
})

// ——— the end of a process ———

test('a process ends as it should, with its memory intact, whichever locks its threads hold', async t => {
  const { code, signal, lines, stderr } = await runChild(t, async ({ api, say, startWorker }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const others = Array.from({ length: 50 }, () => new api.AsyncLock(new SharedArrayBuffer(64)))
    for (const other of others) other.tryLock()
    const worker = startWorker({ sab: lock.sab, others: others.map(({ sab }) => sab) }, ({ api, data }) => {
      new api.AsyncLock(data.sab).tryLock()
    })
    await worker.done()
    await worker.exited
    // From here on main is the only one that has the memory, and it ends holding the locks in it.
    say(lock.tryLock().ownerDied)
  })
  assert.strictEqual(stderr, '')
  assert.deepStrictEqual([code, signal, lines], [0, null, ['true']])
})

test('a thread that is the last to have the memory of its locks may die with them', { timeout: 60000 }, async t => {
  const { code, signal, lines, stderr } = await runChild(t, async ({ say, startWorker, require }) => {
    const { Worker } = require('worker_threads')
    for (let round = 0; round < 10; round++) {
      await (async () => {
        let sab = round % 2 === 0 ? new SharedArrayBuffer(4096) : undefined
        const worker = startWorker({ sab }, ({ api, data, post }) => {
          const sab = data.sab || new SharedArrayBuffer(4096)
          const locks = []
          for (let at = 0; at < 4096; at += 4) {
            const lock = new api.AsyncLock(sab, { byteOffset: at })
            lock.lock()
            locks.push(lock)
          }
          post(data.sab ? 'held' : sab)
          return new Promise(() => setInterval(() => locks, 1000))
        })
        // This thread must not keep the memory alive.
        sab = undefined // eslint-disable-line no-useless-assignment
        await worker.next()
        await new Promise(resolve => setTimeout(resolve, 5))
        for (let n = 0; n < 5; n++) global.gc()
        await worker.terminate()
      })()
    }
    say(Worker.name.length > 0 && 'ended')
  }, undefined, { execArgv: ['--expose-gc'] })
  assert.strictEqual(stderr, '')
  assert.deepStrictEqual([code, signal, lines], [0, null, ['ended']])
})

test('process.exit() on main while workers hold and await locks ends the process at once', async t => {
  const { code, signal, stderr } = await runChild(t, async ({ api, startWorker }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    startWorker(lock.sab, ({ api, data }) => { new api.AsyncLock(data).lock() })
    startWorker(lock.sab, ({ api, data }) => new api.AsyncLock(data).lockAsync())
    while (api.waiterCount(lock.i32a, 0) < 2) await new Promise(resolve => setTimeout(resolve, 1))
    process.exit(token.locked ? 5 : 1)
  })
  assert.strictEqual(stderr, '')
  assert.deepStrictEqual([code, signal], [5, null])
})
