'use strict'

// ATOMICS_WAITASYNC_STALL: threads that wait for one another are reported once, with all links.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../../harness')
const { runChild } = require('../../fixtures/queue-toolbox')
const stallReports = require('../../fixtures/stall-reports')

const CODE = 'ATOMICS_WAITASYNC_STALL'

async function run (t, fn, places = false) {
  const { code, lines, stderr } = await runChild(t, fn, undefined, { env: { [CODE]: '300' } })
  return { code, lines, stderr, reports: stallReports(stderr, { places }) }
}

const HELD = /held for T by ((?:the main )?thread(?: \d+)?), taken at P$/

/** The links of a ring's report: who waits, and who holds what it waits for. */
function linksOf (report) {
  const [head, ...links] = report.split('\n')
  assert.strictEqual(head, 'These threads wait for one another:')
  return links.map(link => {
    const [, thread] = /^ {2}((?:the main )?thread(?: \d+)?) has /.exec(link)
    return [thread, HELD.exec(link)[1], link]
  })
}

test('three threads that block for one another at the same time are one report of three links', async t => {
  const { reports, stderr } = await run(t, async ({ api, startWorker, until }) => {
    const rings = 4
    const sab = new SharedArrayBuffer(16 * rings + 8)
    for (let n = 0; n < 3 * rings; n++) {
      startWorker(({ api, Atomics, data: { sab, n, all } }) => {
        const [ring, place] = [(n / 3) | 0, n % 3]
        const lockAt = index => new api.AsyncLock(sab, { byteOffset: 16 * ring + 4 * index, name: 'abc'[index] + ring })
        lockAt(place).lock()
        // All begin at once.
        const words = new Int32Array(sab)
        const begin = words.length - 1
        if (Atomics.add(words, begin, 1) + 1 === all) Atomics.notify(words, begin)
        for (let now; (now = Atomics.load(words, begin)) < all;) Atomics.wait(words, begin, now)
        lockAt((place + 1) % 3).lockIfAvailable(1e6)
      }, { sab, n, all: 3 * rings })
    }
    const isOver = ({ kind, blocked, milliseconds }) => kind === 'AsyncLock' && blocked && milliseconds > 1500
    await until(() => api.snapshot().waiting.filter(isOver).length === 3 * rings)
    process.exit()
  }, true)
  assert.strictEqual(reports.length, 4, stderr)
  const names = reports.map(report => {
    const links = linksOf(report)
    const threads = links.map(([thread]) => thread)
    // Each holds what the one before it waits for.
    assert.deepStrictEqual(links.map(([, holder]) => holder), [...threads.slice(1), threads[0]], stderr)
    assert.ok(links.every(([, , link]) => /has been blocked for T at P, and waits for AsyncLock "[abc]\d", held for T by/.test(link)), stderr)
    return links.map(([, , link]) => /"(..)"/.exec(link)[1]).sort().join(' ')
  })
  assert.deepStrictEqual(names.sort(), [0, 1, 2, 3].map(ring => `a${ring} b${ring} c${ring}`))
})

test('a ring of a promise and a blocked thread is one report, beside those of the waits that are on none', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep, startWorker, until }) => {
    const sab = new SharedArrayBuffer(8)
    const [a, b] = [0, 4].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    keep(a.tryLock())
    startWorker(({ api, data: sab }) => {
      new api.AsyncLock(sab, { byteOffset: 4 }).lock()
      new api.AsyncLock(sab).lock()
    }, sab)
    await until(() => a.waiters === 1)
    // Each of them is on the ring.
    for (let n = 0; n < 10; n++) b.executeLocked(() => {})
    startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, sab)
    await until(() => api.snapshot().waiting.filter(({ milliseconds }) => milliseconds > 1500).length === 12)
    process.exit()
  })
  const [ring, ...others] = reports.sort((one, two) => two.startsWith('These') - one.startsWith('These'))
  assert.strictEqual(ring, [
    'These threads probably wait for one another:',
    '  the main thread has awaited an AsyncLock for T, held for T by thread 1',
    '  thread 1 has been blocked for T, and waits for an AsyncLock, held for T by the main thread'
  ].join('\n'), stderr)
  const keeper = 'held for T by the main thread; it has awaited an AsyncLock for T, and 9 more'
  assert.deepStrictEqual(others, [`Thread 2 has been blocked for T, and waits for an AsyncLock:\n  ${keeper}`], stderr)
})

const noContexts = (AsyncLocalStorage === undefined || process.version.startsWith('v13.')) && 'this Node has no AsyncLocalStorage, or one that calls back later'

test('tasks of one thread that wait for one another are one report, which says that it is probable; of many rings the first few', { skip: noContexts }, async t => {
  const { lines, reports, stderr } = await run(t, async ({ api, say, until }) => {
    const lock = () => new api.AsyncLock(new SharedArrayBuffer(4))
    const transfer = (from, to) => from.executeLocked(async () => {
      await new Promise(setImmediate)
      await to.executeLocked(() => {})
    })
    const own = lock()
    own.executeLocked(() => own.executeLocked(() => {}))
    const shared = new api.RwLock(new SharedArrayBuffer(4))
    for (let n = 0; n < 2; n++) {
      shared.executeShared(async () => {
        await new Promise(setImmediate)
        await shared.executeLocked(() => {})
      })
    }
    for (let n = 0; n < 7; n++) {
      const [a, b] = [lock(), lock()]
      transfer(a, b)
      transfer(b, a)
    }
    setInterval(() => {}, 1e6)
    say(await new Promise(resolve => process.on('warning', ({ message }) => { if (message.includes('more')) resolve(message) })))
    process.exit()
  })
  const tasks = 'These tasks of one thread probably wait for one another:'
  const link = '  the main thread has awaited an AsyncLock for T, held for T by the main thread'
  const upgrade = '  the main thread has awaited an RwLock (exclusive) for T, held (shared) for T by the main thread'
  const alone = 'This task probably waits for what it holds itself:'
  const expected = [`${alone}\n${link}`, `${alone}\n${upgrade}`, `${tasks}\n${link}\n${link}`]
  const rings = reports.filter(text => !text.includes('more promises'))
  assert.deepStrictEqual(Array.from(new Set(rings)).sort(), expected.sort(), stderr)
  // In one period or, on a busy machine, in two.
  assert.ok(rings.length >= 5 && rings.length < 9, stderr)
  assert.ok(/^\d+ more promises of this thread have been pending for over 300 ms\.$/.test(lines[0]), stderr)
})

test('a ring that has gone and comes again is reported again', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep, startWorker, until, sleep }) => {
    const sab = new SharedArrayBuffer(8)
    const [a, b] = [0, 4].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    keep(a.tryLock())
    startWorker(({ api, data: sab }) => {
      new api.AsyncLock(sab, { byteOffset: 4 }).lock()
      for (let n = 0; n < 2; n++) new api.AsyncLock(sab).lockIfAvailable(1200)
      new api.Latch(sab, { count: 9 }).wait()
    }, sab)
    await until(() => a.waiters === 1)
    b.executeLocked(() => {})
    await until(() => api.snapshot().waiting.some(({ kind }) => kind === 'Latch'))
    await sleep(100)
    process.exit()
  })
  assert.deepStrictEqual(reports.map(text => text.split('\n')[0]), [1, 2].map(() => 'These threads probably wait for one another:'), stderr)
})

test('a reader behind a writer in the line is told behind whom', async t => {
  const { reports, stderr } = await run(t, async ({ api, keep, startWorker, until }) => {
    const lock = new api.RwLock(new SharedArrayBuffer(4), { name: 'cache' })
    keep(lock.tryLockShared())
    startWorker(({ api, data: sab }) => { new api.RwLock(sab).lock() }, lock.buffer)
    await until(() => lock.waiters === 1)
    startWorker(({ api, data: sab }) => { new api.RwLock(sab).lockShared() }, lock.buffer)
    await until(() => api.snapshot().waiting.filter(({ blocked, milliseconds }) => blocked && milliseconds > 1200).length === 2)
    process.exit()
  })
  const begin = ['Thread 1 has been blocked for T, and waits for RwLock "cache" (exclusive)', 'Thread 2 has been blocked for T, and waits for RwLock "cache" (shared)']
  assert.deepStrictEqual(reports.sort(), [
    `${begin[0]}:\n  held (shared) for T by the main thread; it waits for nothing`,
    `${begin[1]}:\n  behind thread 1, which requests it (exclusive); it has been blocked for T, and waits for RwLock "cache" (exclusive)`
  ], stderr)
})
