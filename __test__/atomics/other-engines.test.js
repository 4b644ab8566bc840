'use strict'

// long: it starts many workers

// Bugs of other implementations of this queue: for each a test that shows it is not in this one.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { linesOf, now, onAQuietMachine, prints, startWorker, words } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

const [SEQUENCE, ACKNOWLEDGED, OVER] = [0, 1, 2]

/** Milliseconds after which a notification was lost. */
const LOST = slowness * 20000

/** Starts a thread that stores numbers plainly and notifies: at ever other moments. */
function startProducer (t, array, milliseconds) {
  return startWorker(t, { array, milliseconds, LOST }, ({ Atomics, data, now, randomFrom }) => {
    const { array, milliseconds, LOST } = data
    const random = randomFrom(1)
    const end = now() + milliseconds
    let round = 0
    while (now() < end || round <= 10) {
      array[0] = ++round
      Atomics.notify(array, 0)
      const lost = now() + LOST
      while (Atomics.load(array, 1) !== round)
        if (now() > lost) throw new Error(`the notification of round ${round} was lost`)
      for (let delay = Math.floor(2000 * random() ** 4); delay > 0; delay--);
    }
    Atomics.store(array, 2, 1)
    array[0] = -1
    Atomics.notify(array, 0)
  })
}

test('the value is not read before the list is locked: a blocked thread misses no notification', async t => {
  const array = words(3)
  const consumer = startWorker(t, { array, LOST }, ({ Atomics, data: { array, LOST } }) => {
    for (let seen = 0; Atomics.load(array, 2) === 0;) {
      if (Atomics.wait(array, 0, seen, LOST / 2) === 'timed-out') throw new Error(`the change of ${seen} was missed`)
      seen = Atomics.load(array, 0)
      Atomics.store(array, 1, seen)
    }
  })
  const producer = startProducer(t, array, 700)
  await consumer.done()
  await producer.done()
})

test('the value is not read before the list is locked: a promise misses no notification', async t => {
  const array = words(3)
  const producer = startProducer(t, array, 700)
  for (let seen = 0; Atomics.load(array, OVER) === 0;) {
    const { async, value } = Atomics.waitAsync(array, SEQUENCE, seen, LOST / 2)
    assert.notStrictEqual(async ? await value : value, 'timed-out', `the change of ${seen} was missed`)
    seen = Atomics.load(array, SEQUENCE)
    Atomics.store(array, ACKNOWLEDGED, seen)
  }
  await producer.done()
})

test('a live thread that wakes a dead thread\'s waiter does not abort the process', { timeout: 60000 }, async t => {
  await prints(t, ['alive'], async ({ Atomics, say, startWorker, words }) => {
    const array = words(3)
    // Notifies while the others die, too.
    const notifier = startWorker(array, ({ Atomics, data }) => {
      let woken = 0
      while (Atomics.load(data, 2) === 0) woken += Atomics.notify(data, 0, 1) + Atomics.notify(data, 1)
      return woken
    })
    for (let round = 0; round < 12; round++) {
      const victim = startWorker({ array, round }, ({ Atomics, data: { array, round }, busy }) => {
        for (let n = 0; n < 2000; n++) Atomics.waitAsync(array, n % 2, 0, n % 3 === 0 ? n / 20 : undefined)
        // In the middle of things: with its promises settled and not, blocked, or gone by itself.
        if (round % 3 === 0) process.exit(0)
        if (round % 3 === 1) Atomics.wait(array, 0, 0)
        busy(5)
        Atomics.notify(array, 2)
      })
      await Promise.race([victim.exited, victim.done().catch(() => {}), Atomics.waitAsync(array, 2, 0, 60).value])
      await victim.terminate()
      Atomics.notify(array, 0)
      Atomics.notify(array, 1)
    }
    Atomics.store(array, 2, 1)
    await notifier.done()
    say('alive')
  })
})

test('the end of a worker with 20 000 waits does not stall the notify of others', { timeout: 90000 }, t =>
  onAQuietMachine(async () => {
    const WAITS = 20000
    const WORDS = 2000
    const array = words(2 * WORDS)
    const phase = words(1) // 0: nothing happens, 1: the worker ends, 2: it is gone
    const victim = startWorker(t, { array, WAITS, WORDS }, ({ Atomics, data: { array, WAITS, WORDS } }) => {
      // Half of them on one word, the others all over the place; a third with a timeout.
      for (let n = 0; n < WAITS; n++)
        Atomics.waitAsync(array, n % 2 ? 0 : n % WORDS, 0, n % 3 === 0 ? 60000 + n : undefined)
    })
    await victim.done()
    const notifier = startWorker(t, { array, phase, WORDS }, ({ Atomics, data, now, require, post }) => {
      const { array, phase, WORDS } = data
      const delay = () => {
        try {
          return Number(require('fs').readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1]) / 1e6
        } catch (_) {
          return 0
        }
      }
      const measured = []
      for (const during of [0, 1]) {
        let longest = 0
        let calls = 0
        while (Atomics.load(phase, 0) === during) {
          const starved = delay()
          for (let n = 0; n < 100; n++) {
            const start = now()
            // Words without waiters, whose neighbours in the queue's tables are all crowded.
            Atomics.notify(array, WORDS + (calls++ % WORDS))
            let elapsed = now() - start
            if (elapsed > 5) elapsed -= delay() - starved
            longest = Math.max(longest, elapsed)
          }
          if (calls === 100000) post('warm')
        }
        measured.push({ longest, calls })
      }
      return measured
    })
    await notifier.next()
    phase[0] = 1
    const start = now()
    await victim.terminate()
    const elapsed = now() - start
    phase[0] = 2
    const [before, during] = await notifier.done()
    assert.strictEqual(api.waiterCount(array, 0), 0)
    assert.ok(
      during.longest <= 10 + (process.platform === 'linux' ? 0 : before.longest),
      `${JSON.stringify({ before, during, elapsed })}`
    )
  })
)

test('waits that are never notified do not leak when their worker has ended', { timeout: 90000 }, async t => {
  const [grown] = await linesOf(t, async ({ Atomics, api, say, startWorker, words }) => {
    const array = words(100)
    const rounds = async (count, waits) => {
      for (let round = 0; round < count; round++) {
        const worker = startWorker({ array, waits }, ({ Atomics, data: { array, waits } }) => {
          for (let n = 0; n < waits; n++) Atomics.waitAsync(array, n % 100, 0, n % 2 ? undefined : 3600000)
        })
        await worker.done()
        await worker.terminate()
        for (let index = 0; index < 100; index++)
          if (api.waiterCount(array, index) !== 0) throw new Error('a waiter is left')
      }
      global.gc()
      return process.memoryUsage().rss / 2 ** 20
    }
    const WAITS = 50000
    const first = await rounds(3, WAITS)
    const last = await rounds(8, WAITS)
    say(last - first)
  }, undefined, { execArgv: ['--expose-gc'] })
  // A waiter has about 100 bytes in the queue and as many in JavaScript, so 400 000 that stay would be 40 MB at least.
  assert.ok(grown < 25, `${grown} MB more after 400 000 waits`)
})

test('a thread that notifies 0 waiters and ends wakes no waiter', async t => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0)
  let settled = false
  value.then(() => { settled = true })
  for (let round = 0; round < 5; round++) {
    const thread = startWorker(t, array, ({ Atomics, data }) => Atomics.notify(data, 0, 0))
    assert.strictEqual(await thread.done(), 0)
    await thread.exited
    assert.strictEqual(api.waiterCount(array, 0), 1)
  }
  assert.strictEqual(settled, false)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await value, 'ok')
})
