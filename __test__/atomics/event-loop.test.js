'use strict'

// long: it starts a process for most cases, and each subject has the same queue

// When a pending promise keeps its thread's event loop alive, and when not. Most of this can only be seen from outside,
// so most tests here run a process whose main thread has nothing else to do.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const {
  linesOf,
  now,
  onAQuietMachine,
  prints,
  starved,
  startWorker,
  until,
  words
} = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

// ——— a timeout ———

test('a promise with a timeout keeps main alive until it settles', t =>
  prints(t, ['timed-out', 'true'], ({ Atomics, now, say, words }) => {
    const start = now()
    process.on('exit', () => say(now() - start >= 150))
    Atomics.waitAsync(words(1), 0, 0, 150).value.then(say)
  }))

test('a promise with a timeout, lined up behind an await or in a callback, keeps main alive', t =>
  prints(t, ['timed-out', 'timed-out', 'timed-out'], async ({ Atomics, say, words, sleep }) => {
    const array = words(1)
    say(await Atomics.waitAsync(array, 0, 0, 20).value)
    await sleep(5)
    say(await Atomics.waitAsync(array, 0, 0, 20).value)
    process.once('beforeExit', () => Atomics.waitAsync(array, 0, 0, 20).value.then(say))
  }))

test('the last of many promises keeps main alive, in whichever order the others settle', t =>
  prints(t, ['ok', 'ok', 'ok', 'ok', 'last timed-out'], ({ Atomics, say, words }) => {
    const array = words(2)
    Atomics.waitAsync(array, 1, 0, 1000).value.then(outcome => say(`last ${outcome}`))
    for (const timeout of [20000, 30000, 40000]) Atomics.waitAsync(array, 0, 0, timeout).value.then(say)
    Atomics.waitAsync(array, 0, 0).value.then(say)
    Atomics.notify(array, 0)
  }))

test('main ends when the last promise has settled, not at the timeouts of those that were notified', t =>
  prints(t, ['true'], ({ Atomics, now, say, words }) => {
    const array = words(1)
    const start = now()
    process.on('exit', () => say(now() - start < 10000))
    for (let n = 0; n < 100; n++) Atomics.waitAsync(array, 0, 0, 60000)
    Atomics.notify(array, 0)
  }))

// ——— no timeout ———

test('a promise without a timeout that no other thread can notify does not keep main alive', t =>
  prints(t, ['end'], ({ Atomics, say, words }) => {
    process.on('exit', () => say('end'))
    Atomics.waitAsync(words(1), 0, 0).value.then(() => say('settled'))
  }))

test('a promise without a timeout keeps main alive as long as another thread has the package, and no longer', t =>
  prints(t, ['2,true'], async ({ Atomics, now, say, words, startWorker, until }) => {
    const array = words(2)
    // The thread's handle holds nothing: what keeps main alive from here on is the promise.
    const other = startWorker(array, async ({ Atomics, api, data, sleep, until }) => {
      Atomics.store(data, 1, 1)
      await until(() => api.waiterCount(data, 0) === 1, 'main waits')
      await sleep(250)
      Atomics.store(data, 1, 2)
    })
    await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
    const start = now()
    other.worker.unref()
    process.on('exit', () => say([Atomics.load(array, 1), now() - start < 10000]))
    Atomics.waitAsync(array, 0, 0).value.then(() => say('settled'))
  }))

test('a promise without a timeout of main is settled by the other thread, although nothing else keeps main alive', t =>
  prints(t, ['ok', 'end'], async ({ Atomics, say, words, startWorker, until }) => {
    const array = words(2)
    const other = startWorker(array, async ({ Atomics, api, data, sleep, until }) => {
      Atomics.store(data, 1, 1)
      await until(() => api.waiterCount(data, 0) === 1, 'main waits')
      await sleep(150)
      Atomics.notify(data, 0)
      // It may have ended before main sees the notification.
    })
    await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
    other.worker.unref()
    Atomics.waitAsync(array, 0, 0).value.then(say)
    process.on('exit', () => say('end'))
  }))

test('a promise that was pending before the other thread came keeps main alive once it is there', t =>
  prints(t, ['ok', 'end'], ({ Atomics, say, words, startWorker }) => {
    const array = words(1)
    Atomics.waitAsync(array, 0, 0).value.then(say)
    const other = startWorker(array, async ({ Atomics, data, sleep, post }) => {
      post('here')
      await sleep(200)
      Atomics.notify(data, 0)
    })
    other.next().then(() => other.worker.unref())
    process.on('exit', () => say('end'))
  }))

test('a thread that has not loaded the package keeps no other one alive', t =>
  prints(t, ['true', 'true'], async ({ Atomics, now, say, stranger, words }) => {
    say(await new Promise(resolve => stranger.once('message', resolve)))
    stranger.unref()
    const start = now()
    process.on('exit', () => say(now() - start < 10000))
    Atomics.waitAsync(words(1), 0, 0).value.then(say)
  }, undefined, { env: { STRANGER: '1' } }))

test('a worker with a promise without a timeout is alive until main notifies it', async t => {
  const array = words(1)
  const waiter = startWorker(t, array, ({ Atomics, data }) => {
    Atomics.waitAsync(data, 0, 0).value.then(outcome => { data[0] = outcome === 'ok' ? 1 : 2 })
  })
  await waiter.done()
  await until(() => api.waiterCount(array, 0) === 1, 'the worker waits')
  let gone = false
  waiter.exited.then(() => { gone = true })
  await Atomics.waitAsync(words(1), 0, 0, 150).value
  assert.strictEqual(gone, false)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await waiter.exited, 0)
  assert.strictEqual(array[0], 1)
})

test('the timeouts of a worker keep it alive, although main has long been done', t =>
  prints(t, ['timed-out'], ({ startWorker, say }) => {
    startWorker(({ Atomics, words, post }) => {
      Atomics.waitAsync(words(1), 0, 0, 150).value.then(post)
    }).next().then(say)
  }))

// ——— from the notification to the settlement ———

for (const unref of [false, true]) {
  const which = unref ? 'that is unref\'d ' : ''
  test(`a promise ${which}that was notified by its own thread settles before the thread ends`, t =>
    prints(t, ['2', 'ok', 'ok', 'end'], ({ Atomics, api, say, words, data: unref }) => {
      const array = words(1)
      for (const timeout of [undefined, 60000]) {
        const { value } = Atomics.waitAsync(array, 0, 0, timeout)
        value.then(say)
        if (unref) api.unref(value)
      }
      say(Atomics.notify(array, 0))
      process.on('exit', () => say('end'))
    }, unref))

  test(`a promise ${which}that was notified by another thread while its own was busy settles before that ends`, t =>
    prints(t, ['ok', 'end'], async ({ Atomics, api, say, words, startWorker, until, busy, data: unref }) => {
      const array = words(2)
      const other = startWorker(array, ({ Atomics, data }) => {
        Atomics.store(data, 1, 1)
        while (Atomics.load(data, 1) === 1) Atomics.wait(data, 1, 1, 1)
        Atomics.notify(data, 0)
      })
      await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
      other.worker.unref()
      const { value } = Atomics.waitAsync(array, 0, 0)
      value.then(say)
      if (unref) api.unref(value)
      Atomics.store(array, 1, 2)
      while (api.waiterCount(array, 0) > 0);
      busy(100) // the other thread has ended by now, and nothing but the promise can keep main alive
      process.on('exit', () => say('end'))
    }, unref))
}

test('a promise notified in an exit listener of the event loop settles', t =>
  prints(t, ['1', 'ok'], ({ Atomics, say, words }) => {
    const array = words(1)
    Atomics.waitAsync(array, 0, 0).value.then(say)
    process.once('beforeExit', () => say(Atomics.notify(array, 0)))
  }))

test('a promise that was notified by a thread which ended at once settles, time and again', t =>
  prints(t, new Array(8).fill('ok'), async ({ Atomics, say, words, startWorker, until }) => {
    const array = words(2)
    for (let round = 0; round < 8; round++) {
      const other = startWorker(array, ({ Atomics, data }) => {
        Atomics.store(data, 1, 1)
        while (Atomics.notify(data, 0) === 0);
        process.exit()
      })
      await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
      Atomics.store(array, 1, 0)
      other.worker.unref()
      say(await Atomics.waitAsync(array, 0, 0).value)
    }
  }))

// ——— ref and unref ———

test('unref lets main end before the timeout', t =>
  prints(t, ['true', 'true', 'true', 'true'], ({ Atomics, api, now, say, words }) => {
    const start = now()
    process.on('exit', () => say(now() - start < 10000))
    const array = words(1)
    for (let n = 0; n < 3; n++) {
      const { value } = Atomics.waitAsync(array, 0, 0, 60000)
      say(api.unref(value))
      value.then(() => say('settled'))
    }
  }))

test('a promise that is unref\'d settles if something else keeps its thread alive', async () => {
  const array = words(1)
  const [first, second] = [Atomics.waitAsync(array, 0, 0, 5).value, Atomics.waitAsync(array, 0, 0).value]
  assert.strictEqual(api.unref(first), true)
  assert.strictEqual(api.unref(second), true)
  const alive = setInterval(() => {}, 1000)
  assert.strictEqual(await first, 'timed-out')
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await second, 'ok')
  clearInterval(alive)
})

test('ref takes unref back; neither counts twice', t =>
  prints(t, ['kept timed-out'], ({ Atomics, api, say, words }) => {
    const array = words(1)
    const kept = Atomics.waitAsync(array, 0, 0, 100).value
    const left = Atomics.waitAsync(array, 0, 0, 60000).value
    kept.then(outcome => say(`kept ${outcome}`))
    left.then(outcome => say(`left ${outcome}`))
    for (let n = 0; n < 3; n++) api.unref(kept)
    api.ref(kept)
    for (let n = 0; n < 3; n++) api.ref(left)
    api.unref(left)
  }))

test('one promise of many is unref\'d, the others hold', t =>
  prints(t, ['timed-out'], ({ Atomics, api, say, words }) => {
    const array = words(1)
    const promises = []
    for (let n = 0; n < 1000; n++) promises.push(Atomics.waitAsync(array, 0, 0, n === 500 ? 100 : 60000).value)
    promises.forEach((promise, n) => { if (n !== 500) api.unref(promise) })
    promises[500].then(say)
  }))

test('unref and ref work on a promise without a timeout, too', t =>
  prints(t, ['ok', 'true'], async ({ Atomics, api, now, say, words, startWorker, until }) => {
    const array = words(2)
    const other = startWorker(array, async ({ Atomics, api, data, sleep, until }) => {
      Atomics.store(data, 1, 1)
      await until(() => api.waiterCount(data, 0) === 1, 'main waits')
      await sleep(150)
      Atomics.notify(data, 0)
      await sleep(60000)
    })
    await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
    other.worker.unref()
    const left = Atomics.waitAsync(array, 1, 1).value
    const kept = Atomics.waitAsync(array, 0, 0).value
    api.unref(left)
    api.unref(kept)
    api.ref(kept)
    kept.then(say)
    const start = now()
    process.on('exit', () => say(now() - start < 20000))
  }))

test('ref and unref say whether the promise was pending', async () => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0)
  assert.strictEqual(api.ref(value), true)
  assert.strictEqual(api.unref(value), true)
  assert.strictEqual(api.unref(value), true)
  assert.strictEqual(api.ref(value), true)
  assert.strictEqual(api.ref(Promise.resolve()), false)
  assert.strictEqual(api.unref(new Promise(() => {})), false)
  assert.strictEqual(api.unref(value.then(() => {})), false)
  Atomics.notify(array, 0)
  await value
  assert.strictEqual(api.ref(value), false)
  assert.strictEqual(api.unref(value), false)
})

test('a worker ends although a promise of it is pending, if it is unref\'d; its waiter is gone then', async t => {
  const array = words(1)
  const waiter = startWorker(t, array, ({ Atomics, api, data }) => {
    api.unref(Atomics.waitAsync(data, 0, 0).value)
    api.unref(Atomics.waitAsync(data, 0, 0, 60000).value)
    return api.waiterCount(data, 0)
  })
  assert.strictEqual(await waiter.done(), 2)
  assert.strictEqual(await waiter.exited, 0)
  assert.strictEqual(api.waiterCount(array, 0), 0)
  assert.strictEqual(Atomics.notify(array, 0), 0)
})

test('a thread that waits for settlement sleeps', async t => {
  const time = slowness * 500
  const lines = await linesOf(t, async ({ Atomics, data: time, say, words, startWorker }) => {
    // Several in two threads, so that whatever might be polled is.
    const other = startWorker(time, ({ Atomics, data: time, post, words }) => {
      const { value } = Atomics.waitAsync(words(1), 0, 0, 2 * time)
      post('waits')
      return value
    })
    const array = words(4)
    await other.next()
    await Atomics.waitAsync(array, 0, 0, 100).value // past what follows its start
    const before = process.cpuUsage()
    await Promise.all([1, 2, 3].map(index => Atomics.waitAsync(array, index, 0, time).value))
    const { user, system } = process.cpuUsage(before)
    say((user + system) / 1000)
    await other.done()
  }, time)
  assert.ok(lines[0] < time / 5, `${lines[0]} ms of computing in ${time} ms of waiting`)
})

test('a promise that another thread settles does not wait for a poll', t => onAQuietMachine(async () => {
  const array = words(2)
  const ROUNDS = 300
  const WINDOW = 30
  const echo = startWorker(t, { array, ROUNDS }, async ({ Atomics, data: { array, ROUNDS } }) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { async, value } = Atomics.waitAsync(array, 0, round)
      if (async) await value
      Atomics.add(array, 1, 1)
      Atomics.notify(array, 1)
    }
  })
  await until(() => api.waiterCount(array, 0) === 1, 'the other thread waits')
  const averages = []
  for (let round = 0; round < ROUNDS;) {
    const [begin, before] = [now(), starved()]
    for (const end = round + WINDOW; round < end; round++) {
      Atomics.add(array, 0, 1)
      Atomics.notify(array, 0)
      const { async, value } = Atomics.waitAsync(array, 1, round)
      if (async) await value
    }
    averages.push((now() - begin - (starved() - before)) / WINDOW)
  }
  await echo.done()
  // With two polls a round trip, once a millisecond each, every window would take 1 ms a round trip, give or take 0.08.
  // A busy machine makes some windows longer, but none shorter.
  assert.ok(Math.min(...averages) < 0.7, `${averages.map(each => each.toFixed(2)).join(', ')} ms per round trip`)
}))
