'use strict'
// oldest: force (there diagnostics_channel is missing)

// ATOMICS_WAITASYNC_STALL: waits for locks that last longer are reported, each once.

const assert = require('assert')
const { test } = require('../../harness')
const { runChild } = require('../../fixtures/queue-toolbox')
const stallReports = require('../../fixtures/stall-reports')

const CODE = 'ATOMICS_WAITASYNC_STALL'

/** Runs a program with that setting; `reports`: see `stallReports`. */
async function run (t, fn, after = '100') {
  const { code, lines, stderr } = await runChild(t, fn, undefined, { env: { [CODE]: String(after) } })
  return { code, lines, stderr, reports: stallReports(stderr) }
}

/** The first frame is the caller's, not the package's. */
const FIRST_FRAME = /\] Warning: .*\n( {2}\S.*\n)* {4}at .*function-of-the-test\.js/

test('a blocked thread is reported while it is blocked, although the main thread is busy', async t => {
  const { code, reports, stderr } = await run(t, async ({ api, keep, startWorker, busy }) => {
    const sab = new SharedArrayBuffer(4)
    keep(new api.AsyncLock(sab, { name: 'accounts' }).tryLock())
    // Once its event loop has been quiet: a signal would make its slices shorter. Without a report the last one would be too long.
    const worker = startWorker(({ api, data: sab, post }) => new Promise(() => {
      setTimeout(() => { new api.AsyncLock(sab).lock() }, 200)
      post('started')
    }), sab)
    await worker.next()
    busy(4000)
    process.exit()
  }, 1000)
  assert.deepStrictEqual([code, reports], [0, [
    'Thread 1 has been blocked for T, and waits for AsyncLock "accounts":\n  held for T by the main thread; it waits for nothing'
  ]], stderr)
  assert.ok(FIRST_FRAME.test(stderr), stderr)
})

test('a promise is reported by a warning, with the stack of the request', async t => {
  const { code, lines, reports, stderr } = await run(t, ({ api, keep, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    process.on('warning', ({ name, code, message, detail }) => {
      if (code !== 'ATOMICS_WAITASYNC_STALL') return
      say(JSON.stringify([name, code, /^ {4}at .*function-of-the-test\.js/.test(detail)]))
      setTimeout(() => process.exit(), 1000)
    })
    setInterval(() => {}, 1e6)
    lock.executeLocked(() => {})
  })
  // The first line of the stack is the caller's, not the package's.
  assert.deepStrictEqual([code, lines], [0, [JSON.stringify(['Warning', CODE, true])]], stderr)
  assert.deepStrictEqual(reports, [
    'A promise of the main thread has been pending for T, and waits for an AsyncLock:\n  held for T by the main thread; it is the same thread'
  ], stderr)
})

test('names, shares and permits are reported, blocked or by promises', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep, startWorker, until }) => {
    const sab = new SharedArrayBuffer(12)
    const rw = new api.RwLock(sab)
    const semaphore = new api.Semaphore(sab, { byteOffset: 4 })
    const forever = new Promise(() => {})
    keep(rw.tryLock())
    semaphore.release(2)
    semaphore.use(2, () => forever)
    api.locks.request('cache', () => forever)
    rw.lockSharedAsync()
    semaphore.acquireAsync()
    api.locks.request('cache', { mode: 'shared' }, () => {})
    startWorker(({ api }) => { api.locks.requestSync('cache', () => {}) })
    startWorker(({ api, data: sab }) => { new api.RwLock(sab).lockShared() }, sab)
    startWorker(({ api, data: sab }) => { new api.Semaphore(sab, { byteOffset: 4 }).acquire() }, sab)
    await until(() => api.snapshot().waiting.filter(({ blocked, milliseconds }) => blocked && milliseconds > 1000).length === 3)
    process.exit()
  })
  const own = begin => `A promise of the main thread has been pending for T, and waits for ${begin}; it is the same thread`
  const blocked = what => text => text.includes(`has been blocked for T, and waits for ${what}`)
  const holder = 'held for T by the main thread'
  const [name, share, permits] = [`the lock named "cache":\n  ${holder}`, `an RwLock (shared):\n  ${holder}`, `permits of a Semaphore:\n  2 permits ${holder}`]
  for (const what of [name, share, permits]) {
    assert.ok(reports.includes(own(what)), stderr)
    assert.strictEqual(reports.filter(blocked(what)).length, 1, stderr)
  }
  assert.strictEqual(reports.length, 6, stderr)
})

test('waits for room in a Queue are reported, with the threads that use its messages; those for a message are not', async t => {
  const { reports, stderr } = await run(t, async ({ api, startWorker, until }) => {
    const [full, own, empty] = [1, 1, 1].map(capacity => api.Queue.create({ capacity, messageSize: 16 }))
    const named = new api.Queue(full, { name: 'jobs' })
    for (const queue of [full, own]) queue.tryPut(1)
    own.use(() => new Promise(() => {}))
    const user = startWorker(({ api, data: { full }, post }) => {
      new api.Queue(full).useSync(() => {
        post('used')
        api.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      })
    }, { full })
    await user.next()
    named.putAsync(2)
    own.putAsync(2)
    empty.takeAsync()
    empty.use(() => {})
    startWorker(({ api, data: { full } }) => { new api.Queue(full).put(3) }, { full })
    startWorker(({ api, data: { empty } }) => { new api.Queue(empty).take() }, { empty })
    const isOver = ({ kind, blocked, milliseconds }) => kind === 'Queue' && blocked && milliseconds > 1000
    await until(() => api.snapshot().waiting.filter(isOver).length === 2)
    process.exit()
  })
  const use = 'a message in use for T by'
  const cause = `room in Queue "jobs":\n  ${use} thread 1; it has been blocked for T, and waits for a notification`
  assert.deepStrictEqual(reports.sort(), [
    `A promise of the main thread has been pending for T, and waits for ${cause}`,
    `A promise of the main thread has been pending for T, and waits for room in a Queue:\n  ${use} the main thread; it is the same thread`,
    `Thread 2 has been blocked for T, and waits for ${cause}`
  ], stderr)
  assert.ok(FIRST_FRAME.test(stderr), stderr)
})

test('a request without a caller on its stack is reported with the frames that there are', async t => {
  const { stderr } = await run(t, ({ api, keep }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    Promise.resolve().then(lock.lockAsync.bind(lock, undefined))
    process.on('warning', () => setTimeout(() => process.exit(), 500))
    setInterval(() => {}, 1e6)
  })
  assert.ok(/\] Warning: .*\n {2}held .*\n {4}at /.test(stderr), stderr)
})

test('of many promises the first few are reported one by one', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    for (let n = 0; n < 1000; n++) lock.lockAsync()
    // Nothing else holds the event loop.
    setInterval(() => {}, 1e6)
    let left = 1000
    process.on('warning', ({ code, message }) => {
      if (code !== undefined) left -= parseInt(message) || 1
      if (left === 0) setTimeout(() => process.exit(), 500)
    })
  }, 1000)
  const text = 'A promise of the main thread has been pending for T, and waits for an AsyncLock:\n  held for T by the main thread; it is the same thread'
  const more = /^\d+ more promises of this thread have been pending for over T\.$/
  // In one period or, on a busy machine, in a few; all 1000, or the process would not have ended.
  assert.ok(reports.length < 50 && reports.some(line => more.test(line)), stderr)
  assert.deepStrictEqual(reports.filter(line => line !== text && !more.test(line)), [])
})

test('what is granted in time is not reported, although the thread was busy', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, startWorker, say, busy }) => {
    const sab = new SharedArrayBuffer(4)
    const lock = new api.AsyncLock(sab)
    const worker = startWorker(({ api, data: sab, post, sleep, busy }) => {
      const lock = new api.AsyncLock(sab)
      const token = lock.lock()
      post('held')
      while (lock.waiters === 0);
      token.unlock()
      // Handed over to the promise, whose thread is busy.
      lock.lockIfAvailable(0)
    }, sab)
    await worker.next()
    const promise = lock.lockAsync()
    busy(1500)
    await promise
    // More than are reported one by one.
    const other = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = other.tryLock()
    const others = Array.from({ length: 10 }, () => other.lockAsync().then(token => token.unlock()))
    token.unlock()
    await Promise.all(others)
    say('locked')
    await new Promise(resolve => setTimeout(resolve, 1000))
    process.exit()
  }, 500)
  assert.deepStrictEqual([code, lines, stderr], [0, ['locked'], ''])
})

test('waits for a Barrier, a Latch, a Condition and Atomics.wait are not reported, but that for the lock of a Condition is', async t => {
  const { reports, stderr, lines } = await run(t, async ({ api, keep, Atomics, startWorker, say, until, words }) => {
    const sab = new SharedArrayBuffer(32)
    const lock = new api.AsyncLock(sab)
    const condition = new api.Condition(sab, { byteOffset: 4 })
    new api.Barrier(sab, { parties: 5, byteOffset: 8 }).waitAsync()
    new api.Latch(sab, { count: 1, byteOffset: 12 }).waitAsync()
    Atomics.waitAsync(words(1), 0, 0)
    startWorker(({ api, data: sab }) => { new api.Barrier(sab, { parties: 5, byteOffset: 8 }).wait() }, sab)
    startWorker(({ api, data: sab }) => { new api.Latch(sab, { count: 1, byteOffset: 12 }).wait() }, sab)
    startWorker(({ data: sab, Atomics }) => { Atomics.wait(new Int32Array(sab), 4, 0) }, sab)
    await until(() => api.snapshot().waiting.filter(({ blocked, milliseconds }) => blocked && milliseconds > 400).length === 3)
    const notified = function theCallOfTheCondition () { return condition.waitAsync(lock.tryLock()) }
    notified()
    keep(lock.tryLock())
    condition.notify()
    process.on('warning', ({ code, detail }) => {
      if (code === undefined) return
      say(String(detail.includes('theCallOfTheCondition')))
      setTimeout(() => process.exit(), 100)
    })
  })
  assert.deepStrictEqual(reports, [
    'A promise of the main thread has been pending for T, and waits for an AsyncLock:\n  held for T by the main thread; it is the same thread'
  ], stderr)
  assert.deepStrictEqual(lines, ['true'])
})

test('a stall that might come does not keep the process alive, and a reported thread can be terminated', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, keep, startWorker, say, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    api.unref(lock.lockAsync())
    const worker = startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, lock.sab)
    worker.done().catch(() => {})
    await until(() => api.snapshot().waiting.some(({ blocked }) => blocked))
    await worker.terminate()
    say('ended')
  }, 2 ** 31 - 1)
  assert.deepStrictEqual([code, lines, stderr], [0, ['ended'], ''])
  const reported = await run(t, async ({ api, keep, startWorker, say, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    const worker = startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, lock.sab)
    worker.done().catch(() => {})
    await until(() => api.snapshot().waiting.some(({ blocked, milliseconds }) => blocked && milliseconds > 1000))
    await worker.terminate()
    say('ended')
  })
  assert.deepStrictEqual([reported.code, reported.lines, reported.reports.length], [0, ['ended'], 1], reported.stderr)
})

/** A stalled wait for which an invalid or no setting is in force. */
const stalled = async ({ api, keep, startWorker, until }) => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  keep(lock.tryLock())
  lock.lockAsync()
  for (let n = 0; n < 2; n++) startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, lock.sab)
  await until(() => api.snapshot().waiting.filter(({ milliseconds }) => milliseconds > 300).length === 3)
  process.exit()
}

test('an invalid value is reported once in the process, an empty one or 0 means never', async t => {
  for (const value of ['10s', '-1', '1.5', '2147483648']) {
    const { reports, stderr } = await run(t, stalled, value)
    assert.deepStrictEqual(reports, [`${CODE} must be a whole number of milliseconds from 0 to 2147483647, not the string "${value}"`], stderr)
  }
  for (const value of ['', '0']) assert.deepStrictEqual((await run(t, stalled, value)).stderr, '', value)
})

test('a Worker that has another environment reports, too', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep, require, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    const pure = JSON.stringify(require.resolve('../../pure'))
    const source = `new (require(${pure}).AsyncLock)(require('worker_threads').workerData).lock()`
    const { Worker } = require('worker_threads')
    const worker = new Worker(source, { eval: true, env: {}, workerData: lock.sab })
    worker.on('error', error => { throw error })
    await until(() => api.snapshot().waiting.some(({ blocked, milliseconds }) => blocked && milliseconds > 1000))
    process.exit()
  })
  assert.strictEqual(reports.length, 1, stderr)
})

test('where a program has replaced a function that Node calls for its timers, locks work, and nothing is reported', async t => {
  const { code, lines, reports, stderr } = await run(t, async ({ api, say }) => {
    const lock = new api.AsyncLock()
    // From here on Node has an asynchronous context, for which it calls `apply` before version 24.
    await lock.executeLocked(() => {})
    const token = lock.tryLock()
    const { apply } = Function.prototype
    Function.prototype.apply = () => { throw new Error('apply was called') } // eslint-disable-line no-extend-native
    const promise = lock.lockAsync()
    Function.prototype.apply = apply // eslint-disable-line no-extend-native
    token.unlock()
    ;(await promise).unlock()
    say('unlocked')
  }, 60000)
  assert.deepStrictEqual([code, lines, reports], [0, ['unlocked'], []], stderr)
})
