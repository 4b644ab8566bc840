'use strict'

// long: it waits for time to pass

// Timeouts: never early, not late. For threads other than the waiting one, the clock alone decides, also while the
// waiting thread is busy.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const others = require('../fixtures/others')
const {
  busy,
  median,
  now,
  onAQuietMachine,
  randomFrom,
  startWorker,
  until,
  words
} = require('../fixtures/queue-toolbox')
const starved = require('../fixtures/starved')

/** Timeouts with every kind of fraction. */
function fractions (count, longest) {
  const random = randomFrom(count)
  const picked = [0.1, 0.5, 1.7, 0.001, 0.999, 1, 1.0001, 1.9999, 2, 2.5, 1e-7]
  while (picked.length < count) picked.push(0.05 + random() * longest)
  return picked
}

/** Waits for so long, which must not be over early. Gives how late it was. */
async function neverEarly (method, array, index, timeout) {
  const start = now()
  const result = Atomics[method](array, index, 0, timeout)
  assert.strictEqual(method === 'wait' ? result : await result.value, 'timed-out')
  const elapsed = now() - start
  assert.ok(elapsed >= timeout, `${timeout} ms were over after ${elapsed} ms`)
  return elapsed - timeout
}

for (const method of ['wait', 'waitAsync']) {
  test(`${method} never times out early: one after the other`, async () => {
    const array = words(1)
    // A thread blocks for 30 ms in one go.
    for (const timeout of fractions(130, 4).concat([29.9, 30, 30.1, 33.3, 64.5])) {
      await neverEarly(method, array, 0, timeout)
      assert.strictEqual(api.waiterCount(array, 0), 0)
    }
  })
}

test('a promise never times out early: many at once', async () => {
  const array = words(64)
  await Promise.all(fractions(2000, 60).map((timeout, n) => neverEarly('waitAsync', array, n % 64, timeout)))
})

test('a timeout comes soon after its time', () => onAQuietMachine(async () => {
  const array = words(1)
  const before = starved()
  let late = 0
  for (const timeout of [1, 3.3, 10, 20, 35]) {
    for (const method of ['wait', 'waitAsync']) late = Math.max(late, await neverEarly(method, array, 0, timeout))
  }
  assert.ok(late < 10 + starved() - before, `${late} ms late`)
}))

/** Returns by how many milliseconds promises are late, sorted. They are due at random moments. */
async function lateness (count, at, window) {
  const array = words(1)
  const late = []
  const all = []
  for (let n = 0; n < count; n++) {
    const timeout = at + window * Math.random()
    const start = now()
    all.push(Atomics.waitAsync(array, 0, 0, timeout).value.then(() => late.push(now() - start - timeout)))
  }
  await Promise.all(all)
  return late.sort((a, b) => a - b)
}

// On a quiet machine it is a fifth of a millisecond. A timer of whole milliseconds would be one millisecond late at
// least.
for (const [count, at, window] of [[1, 2, 3], [100000, 1500, 2500]]) {
  test(`of ${count} promises pending, half are hardly late, and none is early`, { timeout: 90000 }, t =>
    onAQuietMachine(async () => {
      const [before, start, taken] = [starved(), now(), others()]
      const late = []
      for (let round = 0; round < (count === 1 ? 41 : 1); round++) late.push(...(await lateness(count, at, window)))
      assert.ok(late.every(each => each >= 0))
      if (median(late) < 0.6) return
      const waiting = (starved() - before) / (now() - start)
      const percent = share => `${Math.round(100 * share)} %`
      if (waiting > 0.1) t.skip(`the machine is busy: no core for ${percent(waiting)} of the time`)
      if (process.platform !== 'linux' && taken() > 0.5)
        t.skip(`the machine is busy: others had ${percent(taken())} of its cores`)
      assert.fail(`${median(late)} ms`)
    })
  )
}

const COUNT = 100000
const WINDOW = 100

/**
 * Lines up 100 000 promises due within 100 ms, after `lead` ms; gives how late the latest settled.
 */
async function latest (array, lead) {
  let late = 0
  const begin = now() + lead
  const all = []
  for (let n = 0; n < COUNT; n++) {
    const due = begin + WINDOW * n / COUNT
    all.push(Atomics.waitAsync(array, n % array.length, 0, due - now()).value.then(outcome => {
      assert.strictEqual(outcome, 'timed-out')
      late = Math.max(late, now() - due)
    }))
    if (now() >= begin) break
  }
  await Promise.all(all)
  // If this machine took so long that the first was due before the last had begun: once more with a longer lead.
  return all.length < COUNT ? latest(array, lead * 2) : late
}

const TITLE = '100 000 promises that are due within 100 ms all settle within 50 ms of their time'
test(TITLE, { timeout: 90000 }, () => onAQuietMachine(async () => {
  const before = starved()
  const late = await latest(words(256), 500)
  const stall = starved() - before
  assert.ok(late <= 50 + stall, `the latest came ${late} ms late, ${stall} ms of which the machine had no core free`)
}))

/**
 * Starts a thread that notifies a waiter of the second word: at the moment in `data.times`, when the first word tells
 * it to.
 */
const startNotifier = (t, data) => startWorker(t, data, ({ Atomics, data: { array, times }, now }) => {
  let round = 0
  const results = []
  Atomics.store(array, 2, 1)
  while (round >= 0) {
    if (Atomics.load(array, 0) === round) continue
    round = Atomics.load(array, 0)
    while (round > 0 && now() < times[0]);
    if (round > 0) results.push(Atomics.notify(array, 1, 1))
    Atomics.store(array, 2, round)
  }
  return results
})

test('a promise past its deadline absorbs no notification of another thread, even at the very moment', async t => {
  // This thread is busy until it has been notified, and the timer has not come to most of these yet.
  const data = { array: words(3), times: new Float64Array(new SharedArrayBuffer(8)) }
  const { array, times } = data
  const other = startNotifier(t, data)
  await until(() => Atomics.load(array, 2) === 1, 'the other thread looks for what to do')
  const random = randomFrom(7)
  for (let round = 1; round <= 100; round++) {
    const timeout = 0.1 + 3 * random()
    const { value } = Atomics.waitAsync(array, 1, 0, timeout)
    times[0] = now() + timeout
    const patient = Atomics.waitAsync(array, 1, 0).value
    Atomics.store(array, 2, 0)
    Atomics.store(array, 0, round)
    while (Atomics.load(array, 2) === 0);
    assert.deepStrictEqual(await Promise.all([value, patient]), ['timed-out', 'ok'])
    assert.strictEqual(api.waiterCount(array, 1), 0)
  }
  Atomics.store(array, 0, -1)
  assert.deepStrictEqual(await other.done(), new Array(100).fill(1))
})

// ECMAScript decides a timeout in a job of the thread that waits. While that runs another job, nothing has been
// decided.

test('a thread wakes its own promise after the deadline, as long as one job of its runs', async () => {
  const array = words(1)
  // The timer has come to some of these, and not to others.
  for (const milliseconds of [30, 2, 1, 1, 1]) {
    const { value } = Atomics.waitAsync(array, 0, 0, 1)
    busy(milliseconds)
    assert.strictEqual(api.waiterCount(array, 0), 1)
    assert.strictEqual(Atomics.notify(array, 0), 1)
    assert.strictEqual(api.waiterCount(array, 0), 0)
    assert.strictEqual(await value, 'ok')
  }
})

test('a thread\'s own promises past their deadlines keep their turns in the line', async () => {
  const array = words(1)
  const outcomes = []
  const wait = async (name, timeout) => { outcomes.push(name + await Atomics.waitAsync(array, 0, 0, timeout).value) }
  const all = [wait('a ', 5), wait('b '), wait('c ', 2), wait('d ', 5), wait('e ')]
  busy(20)
  assert.strictEqual(Atomics.notify(array, 0, 1), 1)
  assert.strictEqual(Atomics.notify(array, 0, 2), 2)
  await Promise.all(all.slice(0, 4))
  assert.deepStrictEqual(outcomes.slice().sort(), ['a ok', 'b ok', 'c ok', 'd timed-out'])
  assert.strictEqual(Atomics.notify(array, 0), 1)
  await all[4]
})

test('the microtasks of a job belong to it: a promise that they notify has not timed out yet', async () => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0, 5)
  await undefined
  busy(20)
  await undefined
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await value, 'ok')
})

test('a thread that ends with promises past their deadlines leaves nothing in the line', async t => {
  const array = words(2)
  const other = startWorker(t, array, ({ Atomics, data, busy }) => {
    for (let n = 0; n < 100; n++) Atomics.waitAsync(data, 0, 0, 1 + n / 20)
    busy(20)
    Atomics.store(data, 1, 1)
    for (;;);
  })
  const patient = until(() => Atomics.load(array, 1) === 1, 'the deadlines of the other thread\'s have passed')
    .then(() => Atomics.waitAsync(array, 0, 0).value)
  await until(() => Atomics.load(array, 1) === 1, 'the same')
  await other.terminate()
  assert.strictEqual(api.waiterCount(array, 0), 1)
  assert.strictEqual(Atomics.notify(array, 0, 1), 1)
  assert.strictEqual(await patient, 'ok')
})

test('a promise of another, busy thread that is past its deadline absorbs no notification', async t => {
  const array = words(2)
  const other = startWorker(t, array, ({ Atomics, data, busy }) => {
    const { value } = Atomics.waitAsync(data, 0, 0, 20)
    Atomics.store(data, 1, 1)
    while (Atomics.load(data, 1) === 1) busy(1)
    return value
  })
  await until(() => Atomics.load(array, 1) === 1, 'the other thread waits')
  busy(20)
  assert.strictEqual(Atomics.notify(array, 0), 0)
  Atomics.store(array, 1, 2)
  assert.strictEqual(await other.done(), 'timed-out')
})

test('a promise that was notified in time is "ok", although its thread hears of it after the deadline', async () => {
  const array = words(1)
  const { value } = Atomics.waitAsync(array, 0, 0, 150)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  busy(200)
  assert.strictEqual(await value, 'ok')
})

test('a wait that a vm time limit interrupted is out of the line at once, although its thread is busy', async t => {
  const array = words(2)
  startWorker(t, array, ({ Atomics, data, require, busy }) => {
    global.blocked = () => Atomics.wait(data, 0, 0)
    try {
      require('vm').runInThisContext('blocked()', { timeout: 20 })
    } catch (_) {}
    Atomics.store(data, 1, 1)
    while (Atomics.load(data, 1) === 1) busy(1)
  })
  await until(() => Atomics.load(array, 1) === 1, 'the wait has been interrupted')
  assert.strictEqual(api.waiterCount(array, 0), 0)
  assert.strictEqual(Atomics.notify(array, 0), 0)
  Atomics.store(array, 1, 0)
})

test('code that a vm time limit interrupts catches nothing and runs nothing', async t => {
  const array = words(4)
  const { caught, messages } = await startWorker(t, array, ({ Atomics, api, data, require }) => {
    const caught = []
    const messages = []
    const code = `for (;;) {
      try { blocked() } catch (error) { caught.push(String(error)) } finally { caught.push('finally') }
    }`
    const lock = new api.AsyncLock(data.buffer, { byteOffset: 4 })
    const condition = new api.Condition(data.buffer, { byteOffset: 8 })
    Atomics.store(data, 3, 1)
    const blocking = [
      () => Atomics.wait(data, 0, 0),
      () => new api.AsyncLock(data.buffer, { byteOffset: 12 }).lock(),
      () => condition.wait(lock.lock())
    ]
    for (global.blocked of blocking) {
      global.caught = []
      try {
        require('vm').runInThisContext(code, { timeout: 80 })
      } catch (error) {
        messages.push(error.message)
      }
      caught.push(...global.caught)
    }
    return { caught, messages }
  }).done()
  assert.deepStrictEqual(caught, [])
  assert.deepStrictEqual(messages.filter(message => /timed out/.test(message)).length, 3, String(messages))
  for (let index = 0; index < 4; index++) assert.strictEqual(api.waiterCount(array, index), 0)
})

test('a blocked thread whose deadline passes as it is notified is either woken and counted, or neither', async t => {
  const array = words(2)
  const ROUNDS = 400
  const other = startWorker(t, array, ({ Atomics, data, randomFrom }) => {
    const random = randomFrom(11)
    let woken = 0
    for (let round = 0; round < 400; round++) if (Atomics.wait(data, 0, 0, 0.02 + 0.2 * random()) === 'ok') woken++
    Atomics.store(data, 1, 1)
    return woken
  })
  const random = randomFrom(12)
  let counted = 0
  while (Atomics.load(array, 1) === 0) {
    counted += Atomics.notify(array, 0, 1)
    busy(0.1 * random())
  }
  const woken = await other.done()
  assert.strictEqual(counted, woken)
  assert.ok(woken <= ROUNDS)
})

test('an earlier deadline that is registered later is kept', async () => {
  const array = words(300)
  const order = []
  const all = []
  for (const timeout of [60000, 200, 30000, 100, 1]) {
    const { value } = Atomics.waitAsync(array, timeout % 300, 0, timeout)
    if (timeout < 1000) all.push(value.then(() => order.push(timeout)))
  }
  await Promise.all(all)
  assert.deepStrictEqual(order, [1, 100, 200])
  assert.strictEqual(Atomics.notify(array, 0), 2)
})

test('timeouts of one word settle in the order of their deadlines', async () => {
  const array = words(1)
  const random = randomFrom(3)
  let latest = 0
  await Promise.all(Array.from({ length: 500 }, async () => {
    const timeout = 30 + 40 * random()
    const earliestDue = now() + timeout
    const { value } = Atomics.waitAsync(array, 0, 0, timeout)
    const latestDue = now() + timeout
    assert.strictEqual(await value, 'timed-out')
    assert.ok(latestDue >= latest, `one settled ${latest - latestDue} ms after another whose deadline was later`)
    latest = Math.max(latest, earliestDue)
  }))
})

test('a timeout beyond all timers is no short one', async () => {
  const array = words(1)
  const early = []
  const all = [2 ** 31, 2 ** 32 + 1, 2 ** 53, 1e15, 1e300, Number.MAX_VALUE].map(timeout => {
    return Atomics.waitAsync(array, 0, 0, timeout).value.then(outcome => { if (outcome !== 'ok') early.push(timeout) })
  })
  await Atomics.waitAsync(words(1), 0, 0, 50).value
  assert.deepStrictEqual(early, [])
  assert.strictEqual(Atomics.notify(array, 0), all.length)
  await Promise.all(all)
  assert.deepStrictEqual(early, [])
})

test('how a timeout is converted', async () => {
  const array = words(1)
  for (const timeout of [0, -0, -1, -1e300, -Infinity, null, '', '0', false, [], '-5']) {
    for (const [value, outcome] of [[0, 'timed-out'], [1, 'not-equal']]) {
      const result = Atomics.waitAsync(array, 0, value, timeout)
      assert.deepStrictEqual(result, { async: false, value: outcome }, String(timeout))
      assert.strictEqual(Atomics.wait(array, 0, value, timeout), outcome, String(timeout))
    }
  }
  for (const timeout of [1, '1', true, [1], { valueOf: () => 1 }, 5e-324]) {
    const { async, value } = Atomics.waitAsync(array, 0, 0, timeout)
    assert.strictEqual(async, true)
    assert.strictEqual(await value, 'timed-out')
  }
  const endless = [undefined, NaN, Infinity, 'x', {}].map(timeout => Atomics.waitAsync(array, 0, 0, timeout).value)
  assert.strictEqual(Atomics.notify(array, 0), endless.length)
  assert.deepStrictEqual(await Promise.all(endless), endless.map(() => 'ok'))
})

test('a wait that a vm time limit interrupted leaves nothing to its thread\'s next wait, nor in the line', async () => {
  const array = words(2)
  global.blocked = () => Atomics.wait(array, 0, 0)
  const interrupt = () => assert.throws(() => vm.runInThisContext('blocked()', { timeout: 20 }), /timed out/)
  for (let round = 0; round < 3; round++) {
    const start = now()
    interrupt()
    assert.ok(now() - start < 10000)
    assert.strictEqual(Atomics.wait(array, 1, 0, 5), 'timed-out')
    assert.strictEqual(api.waiterCount(array, 0), 0)
    interrupt()
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
  interrupt()
  const { value } = Atomics.waitAsync(array, 0, 0)
  assert.strictEqual(Atomics.notify(array, 0, 1), 1)
  assert.strictEqual(await value, 'ok')
  delete global.blocked
})
