'use strict'

// ATOMICS_WAITASYNC_STALL: threads that wait for one another are reported once, with all links.

const assert = require('assert')
const { test } = require('../../harness')
const { needsContexts } = require('../../fixtures/contexts')
const { run } = require('../../fixtures/programs')
const { onAQuietMachine } = require('../../fixtures/queue-toolbox')

const after = 300
const HELD = /held for T by ((?:the main )?thread(?: \d+)?), taken at P$/
const RING = 'These threads probably wait for one another:'

/** Returns the links of a ring's report: who waits, and who holds what it waits for. */
function linksOf (report) {
  const [head, ...links] = report.split('\n')
  assert.strictEqual(head, 'These threads wait for one another:')
  return links.map(link => {
    const [, thread] = /^ {2}((?:the main )?thread(?: \d+)?) has /.exec(link)
    return [thread, HELD.exec(link)[1], link]
  })
}

// Unless one blocks so late that the others are reported before.
test('three threads that block for one another at once are one report of all links', t => onAQuietMachine(async () => {
  const { reports, stderr } = await run(t, { after, places: true }, async ({ startWorker, untilWaiting }) => {
    const rings = 4
    const sab = new SharedArrayBuffer(16 * rings + 8)
    for (let n = 0; n < 3 * rings; n++) {
      startWorker({ sab, n, all: 3 * rings }, ({ api, Atomics, data: { sab, n, all } }) => {
        const [ring, place] = [(n / 3) | 0, n % 3]
        const lockAt = index => new api.AsyncLock(sab, { byteOffset: 16 * ring + 4 * index, name: 'abc'[index] + ring })
        lockAt(place).lock()
        // All begin at once.
        const words = new Int32Array(sab)
        const begin = words.length - 1
        if (Atomics.add(words, begin, 1) + 1 === all) Atomics.notify(words, begin)
        for (let now; (now = Atomics.load(words, begin)) < all;) Atomics.wait(words, begin, now)
        lockAt((place + 1) % 3).lockIfAvailable(1e6)
      })
    }
    await untilWaiting(3 * rings, 1500, { kind: 'AsyncLock' })
    process.exit()
  })
  assert.strictEqual(reports.length, 4, stderr)
  const names = reports.map(report => {
    const links = linksOf(report)
    const threads = links.map(([thread]) => thread)
    // Each holds what the one before it waits for.
    assert.deepStrictEqual(links.map(([, holder]) => holder), [...threads.slice(1), threads[0]], stderr)
    const expected = /has been blocked for T at P, and waits for AsyncLock "[abc]\d", held for T by/
    assert.ok(links.every(([, , link]) => expected.test(link)), stderr)
    return links.map(([, , link]) => /"(..)"/.exec(link)[1]).sort().join(' ')
  })
  assert.deepStrictEqual(names.sort(), [0, 1, 2, 3].map(ring => `a${ring} b${ring} c${ring}`))
}))

test('a ring of a promise and a blocked thread is one report, beside the waits that are on none', async t => {
  const { reports, stderr } = await run(t, { after }, async scope => {
    const { block, heldLock, newLock, startWorker, turn, untilWaiting } = scope
    const [a, b] = [heldLock(), newLock()]
    startWorker([a, b], ({ api, data }) => {
      const [a, b] = data.map(lock => new api.AsyncLock(lock))
      b.lock()
      a.lock()
    })
    while (a.waiters !== 1) await turn()
    // Each of them is on the ring.
    for (let n = 0; n < 10; n++) b.executeLocked(() => {})
    block(a)
    await untilWaiting(12, 1500, { blocked: false })
    process.exit()
  })
  const [ring, ...others] = reports.sort((one, two) => two.startsWith('These') - one.startsWith('These'))
  assert.strictEqual(ring, [
    RING,
    '  the main thread has awaited an AsyncLock for T, held for T by thread 1',
    '  thread 1 has been blocked for T, and waits for an AsyncLock, held for T by the main thread'
  ].join('\n'), stderr)
  const keeper = 'held for T by the main thread; it has awaited an AsyncLock for T, and 9 more'
  assert.deepStrictEqual(others, [`Thread 2 has been blocked for T, and waits for an AsyncLock:\n  ${keeper}`], stderr)
})

test('tasks of one thread that wait for one another are one report; of many the first few', needsContexts, async t => {
  const { told, reports, stderr } = await run(t, { after }, async ({ api, nested, newLock, tell }) => {
    const [own, shared] = [newLock(), new api.RwLock()]
    own.executeLocked(() => own.executeLocked(() => {}))
    for (let n = 0; n < 2; n++) nested(shared, shared, {}, 'executeShared')
    for (let n = 0; n < 12; n++) {
      const [a, b] = [newLock(), newLock()]
      nested(a, b)
      nested(b, a)
    }
    setInterval(() => {}, 1e6)
    process.on('warning', ({ message }) => {
      if (!message.includes('more')) return
      tell(message)
      process.exit()
    })
  })
  const tasks = 'These tasks of one thread probably wait for one another:'
  const link = '  the main thread has awaited an AsyncLock for T, held for T by the main thread'
  const upgrade = '  the main thread has awaited an RwLock (exclusive) for T, held (shared) for T by the main thread'
  const alone = 'This task probably waits for what it holds itself:'
  const expected = [`${alone}\n${link}`, `${alone}\n${upgrade}`, `${tasks}\n${link}\n${link}`]
  const rings = reports.filter(text => !text.includes('more promises'))
  assert.deepStrictEqual(Array.from(new Set(rings)).sort(), expected.sort(), stderr)
  // Five in a period, which may have begun between two waits.
  assert.ok(rings.length >= 5 && rings.length <= 10, stderr)
  assert.ok(/^\d+ more promises of this thread have been pending for over 300 ms\.$/.test(told()[0]), stderr)
})

test('a ring that has gone and comes again is reported again', async t => {
  const { reports, stderr } = await run(t, { after }, async scope => {
    const { heldLock, newLock, sleep, startWorker, turn, untilWaiting } = scope
    const [a, b] = [heldLock(), newLock()]
    startWorker([a, b], ({ api, data }) => {
      const [a, b] = data.map(lock => new api.AsyncLock(lock))
      b.lock()
      for (let n = 0; n < 2; n++) a.lockIfAvailable(1200)
      api.Latch.create({ count: 9 }).wait()
    })
    while (a.waiters !== 1) await turn()
    b.executeLocked(() => {})
    await untilWaiting(1, 0, { kind: 'Latch' })
    await sleep(100)
    process.exit()
  })
  assert.deepStrictEqual(reports.map(text => text.split('\n')[0]), [RING, RING], stderr)
})

test('a reader behind a writer in the line is told behind whom', async t => {
  const { reports, stderr } = await run(t, { after }, async ({ api, block, keep, turn, untilWaiting }) => {
    const lock = api.RwLock.create({ name: 'cache' })
    keep(lock.tryLockShared())
    block(lock)
    while (lock.waiters !== 1) await turn()
    block(lock, 'lockShared')
    await untilWaiting(2, 1200)
    process.exit()
  })
  const blocked = 'has been blocked for T, and waits for RwLock "cache"'
  assert.deepStrictEqual(reports.sort(), [
    `Thread 1 ${blocked} (exclusive):\n  held (shared) for T by the main thread; it waits for nothing`,
    `Thread 2 ${blocked} (shared):\n  behind thread 1, which requests it (exclusive); it ${blocked} (exclusive)`
  ], stderr)
})
