'use strict'

// ATOMICS_WAITASYNC_STALL: threads that wait for one another are reported once, with all links.

const assert = require('assert')
const { test } = require('../../harness')
const { needsContexts } = require('../../fixtures/contexts')
const { run } = require('../../fixtures/programs')
const { onAQuietMachine } = require('../../fixtures/queue-toolbox')

const after = 300
const HELD = /held for T by ((?:the main )?thread(?: \d+)?), taken at P$/
const CYCLE = 'These threads probably wait for one another:'

/** Returns the links of a cycle's report: who waits, and who holds what it waits for. */
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
  const until = (reports, lines) => reports.length >= 4 && lines.length > 0
  const { reports, stderr } = await run(t, { after, places: true, until }, async scope => {
    const { say, startWorker, untilWaiting } = scope
    const cycles = 4
    const sab = new SharedArrayBuffer(16 * cycles + 8)
    for (let n = 0; n < 3 * cycles; n++) {
      startWorker({ sab, n, all: 3 * cycles }, ({ api, Atomics, data: { sab, n, all } }) => {
        const [cycle, place] = [(n / 3) | 0, n % 3]
        const optionsAt = index => ({ byteOffset: 16 * cycle + 4 * index, name: 'abc'[index] + cycle })
        const lockAt = index => new api.AsyncLock(sab, optionsAt(index))
        lockAt(place).lock()
        // All begin at once.
        const words = new Int32Array(sab)
        const begin = words.length - 1
        if (Atomics.add(words, begin, 1) + 1 === all) Atomics.notify(words, begin)
        for (let now; (now = Atomics.load(words, begin)) < all;) Atomics.wait(words, begin, now)
        lockAt((place + 1) % 3).lockIfAvailable(1e6)
      })
    }
    await untilWaiting(3 * cycles, 1500, { kind: 'AsyncLock' })
    say('they wait')
  })
  assert.strictEqual(reports.length, 4, stderr)
  const names = reports.map(report => {
    const links = linksOf(report)
    const threads = links.map(([thread]) => thread)
    // Each holds what the one before it waits for.
    assert.deepStrictEqual(links.map(([, holder]) => holder), [...threads.slice(1), threads[0]], stderr)
    const expected = /has been blocked for T at P waiting for AsyncLock "[abc]\d", held for T by/
    assert.ok(links.every(([, , link]) => expected.test(link)), stderr)
    return links.map(([, , link]) => /"(..)"/.exec(link)[1]).sort().join(' ')
  })
  assert.deepStrictEqual(names.sort(), [0, 1, 2, 3].map(cycle => `a${cycle} b${cycle} c${cycle}`))
}))

test('a cycle of a promise and a blocked thread is one report, beside the waits that are on none', async t => {
  const until = (reports, lines) => reports.length >= 2 && lines.length > 0
  const { reports, stderr } = await run(t, { after, until }, async scope => {
    const { block, heldLock, newLock, say, startWorker, turn, untilWaiting } = scope
    const [a, b] = [heldLock(), newLock()]
    startWorker([a, b], ({ api, data }) => {
      const [a, b] = data.map(lock => new api.AsyncLock(lock))
      b.lock()
      a.lock()
    })
    while (a.waiters !== 1) await turn()
    // Each of them is on the cycle.
    for (let n = 0; n < 10; n++) b.executeLocked(() => {})
    block(a)
    await untilWaiting(12, 1500, { blocked: false })
    say('they wait')
  })
  const [cycle, ...others] = reports.sort((one, two) => two.startsWith('These') - one.startsWith('These'))
  assert.strictEqual(cycle, [
    CYCLE,
    '  the main thread has awaited an AsyncLock for T, held for T by thread 1',
    '  thread 1 has been blocked for T waiting for an AsyncLock, held for T by the main thread'
  ].join('\n'), stderr)
  const keeper = 'held for T by the main thread; it has awaited an AsyncLock for T, and 9 more'
  assert.deepStrictEqual(others, [`Thread 2 has been blocked for T waiting for an AsyncLock:\n  ${keeper}`], stderr)
})

test('tasks of one thread that wait for one another are one report each', needsContexts, async t => {
  const { reports, stderr } = await run(t, { after }, async ({ api, nested, newLock, until }) => {
    const [own, shared] = [newLock(), new api.RwLock()]
    let count = 0
    process.on('warning', ({ code, message }) => { if (code !== undefined && !/more promises/.test(message)) count++ })
    own.executeLocked(() => own.executeLocked(() => {}))
    for (let n = 0; n < 2; n++) nested(shared, shared, {}, 'executeShared')
    for (let n = 0; n < 12; n++) {
      const [a, b] = [newLock(), newLock()]
      nested(a, b)
      nested(b, a)
    }
    // One of the readers' cycle, and 12 of two locks each.
    await until(() => count === 14, '14 reports')
    process.exit()
  })
  const tasks = 'These tasks of one thread probably wait for one another:'
  const link = '  the main thread has awaited an AsyncLock for T, held for T by the main thread'
  const upgrade = '  the main thread has awaited an RwLock (exclusive) for T, held (shared) for T by the main thread'
  const alone = 'This task probably waits for what it holds itself:'
  const expected = [`${alone}\n${link}`, `${alone}\n${upgrade}`, ...Array(12).fill(`${tasks}\n${link}\n${link}`)]
  const cycles = reports.filter(text => !text.includes('more promises'))
  assert.deepStrictEqual(cycles.sort(), expected.sort(), stderr)
})

/**
 * Two threads that each run many tasks, of which each takes one of two locks: no deadlock is possible. Tells how many
 * snapshots had a cycle while a wait was older than the period. Holds of one length would fall into step: then one
 * thread has both locks nearly always.
 */
const oneLockEach = async ({ api, newLock, startWorker, tell, data: form }) => {
  const memory = [newLock('a').buffer, newLock('b').buffer]
  startWorker([memory, form], ({ api, data: [memory, form] }) => {
    const work = () => new Promise(resolve => setTimeout(resolve, 1 + 4 * Math.random()))
    const forms = {
      callbacks: lock => lock.executeLocked(work),
      tokens: lock => lock.lockAsync().then(token => work().then(() => token.unlock()))
    }
    for (const buffer of memory) {
      const lock = new api.AsyncLock(buffer)
      const task = async () => { for (;;) await forms[form](lock) }
      for (let n = 0; n < 30; n++) task()
    }
    return new Promise(() => {})
  })
  const work = () => new Promise(resolve => setTimeout(resolve, 1 + 4 * Math.random()))
  for (const buffer of memory) {
    const lock = new api.AsyncLock(buffer)
    const token = () => lock.lockAsync().then(token => work().then(() => token.unlock()))
    const task = async () => { for (;;) await (form === 'tokens' ? token() : lock.executeLocked(work)) }
    for (let n = 0; n < 30; n++) task()
  }
  let [looks, cycles] = [0, 0]
  while (looks < 150) {
    await new Promise(resolve => setTimeout(resolve, 10))
    const { cycles: { length }, held, waiting } = api.snapshot()
    const holders = new Set(held.map(({ threadId }) => threadId))
    const isOld = threadId => waiting.some(wait => wait.threadId === threadId && wait.milliseconds > 100)
    // As it looks with threads alone.
    if (holders.size === 2 && isOld(0) && isOld(1)) looks++
    cycles += length
  }
  tell(cycles)
  process.exit()
}

for (const form of ['callbacks', 'tokens']) {
  const options = { after: 100, data: form, execArgv: ['--no-warnings'] }
  const needs = form === 'tokens' ? {} : needsContexts
  test(`two threads whose tasks take one lock each, by ${form}, are on no cycle`, needs, async t => {
    const { reports, stderr, told } = await run(t, options, oneLockEach)
    assert.deepStrictEqual(told(), [0], stderr)
    assert.deepStrictEqual(reports.filter(report => report.includes('wait for one another')), [], stderr)
  })
}

for (const form of ['callbacks', 'tokens']) {
  test(`cycles of 2, 3 and 12 threads that await, by ${form}, are one report each, of all links`, async t => {
    const { stderr, told } = await run(t, { after: 1000, data: form }, async scope => {
      const { api, data: form, newLock, startWorker, tell, until } = scope
      const workers = []
      // Names go with the last instance: those in messages are not seen.
      const all = []
      for (const size of [2, 3, 12]) {
        const locks = Array.from({ length: size }, (_, n) => newLock(`${size}.${n}`))
        all.push(locks)
        for (let n = 0; n < size; n++) {
          workers.push(startWorker([locks[n], locks[(n + 1) % size], form], ({ api, data, post, receive }) => {
            const [mine, other] = data.slice(0, 2).map(lock => new api.AsyncLock(lock))
            setInterval(() => {}, 1e6)
            process.on('warning', ({ message }) => { if (/ wait for one another:/.test(message)) post(message) })
            const goesOn = receive()
            if (data[2] === 'callbacks') mine.executeLocked(() => goesOn.then(() => other.executeLocked(() => {})))
            else mine.lockAsync().then(() => goesOn).then(() => other.lockAsync())
            post('held')
            return new Promise(() => {})
          }))
        }
      }
      for (const worker of workers) await worker.next()
      for (const { worker } of workers) worker.postMessage('go on')
      const messages = []
      const hear = worker => worker.next().then(message => {
        messages.push(message)
        hear(worker)
      })
      workers.forEach(hear)
      const sizes = () => api.snapshot().cycles.map(({ length }) => length).sort((a, b) => a - b)
      await until(() => sizes().length === 3 && messages.length >= 3, 'three cycles, and their reports')
      tell(sizes())
      tell(messages)
      process.exit(all.length - 3)
    })
    const [sizes, reports] = told()
    assert.deepStrictEqual(sizes, [2, 3, 12], stderr)
    const links = reports.map(report => report.split('\n').slice(1).map(link => /"(.*?)"/.exec(link)[1]).sort())
    const expected = [2, 3, 12].map(size => Array.from({ length: size }, (_, n) => `${size}.${n}`).sort())
    assert.deepStrictEqual(links.sort((a, b) => a.length - b.length), expected, stderr)
  })
}

test('when the cycle of a wait has gone, the wait is reported again, alone', async t => {
  const until = ({ length }) => length >= 2
  const { reports, stderr } = await run(t, { after, until }, async ({ heldLock, newLock, startWorker, turn }) => {
    const [a, b] = [heldLock('a'), newLock('b')]
    startWorker([a, b], ({ api, data }) => {
      const [a, b] = data.map(lock => new api.AsyncLock(lock))
      b.lock()
      a.lockIfAvailable(1500)
      api.Latch.create({ count: 9 }).wait()
    })
    while (a.waiters !== 1) await turn()
    b.lockAsync()
  })
  // The thread that blocks may find the cycle first.
  const [cycle, alone, ...more] = reports
  assert.ok(cycle.startsWith(CYCLE), stderr)
  const held = 'held for T by thread 1; it has been blocked for T waiting for a Latch'
  const promise = 'A promise of the main thread has been pending for T waiting for AsyncLock "b"'
  assert.strictEqual(alone, `${promise}:\n  ${held}`, stderr)
  assert.deepStrictEqual(more, [], stderr)
})

test('a cycle that has gone and comes again is reported again', async t => {
  const until = ({ length }) => length >= 2
  const { reports, stderr } = await run(t, { after, until }, async ({ heldLock, newLock, startWorker, turn }) => {
    const [a, b] = [heldLock(), newLock()]
    startWorker([a, b], ({ api, data }) => {
      const [a, b] = data.map(lock => new api.AsyncLock(lock))
      b.lock()
      for (let n = 0; n < 2; n++) a.lockIfAvailable(1200)
      api.Latch.create({ count: 9 }).wait()
    })
    while (a.waiters !== 1) await turn()
    b.executeLocked(() => {})
  })
  // A later report may say that it has gone again.
  assert.deepStrictEqual(reports.slice(0, 2).map(text => text.split('\n')[0]), [CYCLE, CYCLE], stderr)
})

test('a reader behind a writer in the line is told behind whom', async t => {
  const until = ({ length }) => length >= 2
  const { reports, stderr } = await run(t, { after, until }, async ({ api, block, keep, turn }) => {
    const lock = api.RwLock.create({ name: 'cache' })
    keep(lock.tryLockShared())
    block(lock)
    while (lock.waiters !== 1) await turn()
    block(lock, 'lockShared')
  })
  const blocked = 'has been blocked for T waiting for RwLock "cache"'
  assert.deepStrictEqual(reports.sort(), [
    `Thread 1 ${blocked} (exclusive):\n  held (shared) for T by the main thread; it waits for no lock of this package`,
    `Thread 2 ${blocked} (shared):\n  behind thread 1, which requests it (exclusive); it ${blocked} (exclusive)`
  ], stderr)
})
