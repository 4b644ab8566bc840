'use strict'

// The exported functions of an entry with the package's own queue.
// subjects: force

// The exported `waitAsync` with a signal: an abort takes the waiter out of the line, and rejects its promise.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { converted, outcomeOf } = require('../fixtures/odd-calls')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { NO_BIGINT64, busy, prints, startWorker, until, words } = require('../fixtures/queue-toolbox')

const { notify, waitAsync, waiterCount } = api
const here = { skip: typeof AbortController !== 'function' && 'no AbortController here' }
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Makes a word; a controller; and `wait(timeout)`, which waits for the word with its signal. */
function start (options = { reason: 'aborted' }) {
  const array = words(1)
  const controller = new TinyController(options)
  const wait = (timeout) => waitAsync(array, 0, 0, timeout, { signal: controller.signal }).value
  return { array, controller, wait }
}

// ——— what ends it ———

test('an abort takes the waiter out of the line at once, and rejects with the reason', async () => {
  const array = words(2)
  const reason = { any: 'value' }
  const controller = new TinyController({ reason })
  const result = waitAsync(array, 1, 0, undefined, { signal: controller.signal })
  assert.deepStrictEqual(Reflect.ownKeys(result), ['async', 'value'])
  assert.strictEqual(result.async, true)
  assert.strictEqual(Object.getPrototypeOf(result.value), Promise.prototype)
  assert.strictEqual(waiterCount(array, 1), 1)
  controller.abort()
  assert.strictEqual(waiterCount(array, 1), 0)
  assert.strictEqual(notify(array, 1), 0)
  assert.strictEqual(await rejection(result.value), reason)
})

test('an AbortController of Node: its reason, or an AbortError where it has none', here, async () => {
  const array = words(1)
  const controller = new AbortController()
  const { value } = waitAsync(array, 0, 0, 60000, { signal: controller.signal })
  controller.abort()
  const error = await rejection(value)
  assert.strictEqual(error.name, 'AbortError')
  if (controller.signal.reason !== undefined) assert.strictEqual(error, controller.signal.reason)
})

test('an AbortSignal whose methods are patched: those are called, and their errors reach no wait', here, async t => {
  const patched = { addEventListener: 0, removeEventListener: 0 }
  const { addEventListener } = AbortSignal.prototype
  const define = (key, value) =>
    Object.defineProperty(AbortSignal.prototype, key, { configurable: true, writable: true, value })
  define('addEventListener', function () {
    patched.addEventListener++
    return addEventListener.apply(this, arguments)
  })
  define('removeEventListener', () => {
    patched.removeEventListener++
    throw new Error('patched')
  })
  t.after(() => {
    delete AbortSignal.prototype.addEventListener
    delete AbortSignal.prototype.removeEventListener
  })
  const array = words(1)
  const controller = new AbortController()
  const { signal } = controller
  const first = waitAsync(array, 0, 0, undefined, { signal })
  assert.strictEqual(notify(array, 0), 1)
  assert.strictEqual(await first.value, 'ok')
  const second = waitAsync(array, 0, 0, undefined, { signal })
  controller.abort()
  assert.strictEqual((await rejection(second.value)).name, 'AbortError')
  assert.ok(patched.addEventListener > 0 && patched.removeEventListener > 0)
})

test('a signal without a reason: an AbortError', async () => {
  const { array, controller, wait } = start({})
  const value = wait()
  controller.abort()
  const aborted = waitAsync(array, 0, 0, undefined, { signal: controller.signal })
  for (const error of [await rejection(value), await rejection(aborted.value)]) {
    assert.deepStrictEqual([error.name, error.code, error instanceof Error], ['AbortError', 'ABORT_ERR', true])
  }
})

test('a notification and a timeout end it as without a signal, and the signal is let go', async () => {
  const { array, controller } = start({})
  const { signal } = controller
  const notified = waitAsync(array, 0, 0, 60000, { signal })
  const timedOut = waitAsync(array, 0, 0, 5, { signal })
  assert.strictEqual(controller.listeners.size, 1)
  assert.strictEqual(await timedOut.value, 'timed-out')
  assert.strictEqual(controller.listeners.size, 1)
  assert.strictEqual(notify(array, 0), 1)
  assert.strictEqual(await notified.value, 'ok')
  assert.strictEqual(controller.listeners.size, 0)
  controller.abort()
  assert.strictEqual(waiterCount(array, 0), 0)
})

test('a notification passes over what was aborted', async () => {
  const array = words(1)
  const [first, second] = [new TinyController({ reason: 'first' }), new TinyController()]
  const aborted = waitAsync(array, 0, 0, undefined, { signal: first.signal })
  const next = waitAsync(array, 0, 0, undefined, { signal: second.signal })
  const last = waitAsync(array, 0, 0)
  first.abort()
  assert.strictEqual(notify(array, 0, 1), 1)
  assert.strictEqual(await rejection(aborted.value), 'first')
  assert.strictEqual(await next.value, 'ok')
  assert.strictEqual(waiterCount(array, 0), 1)
  assert.strictEqual(notify(array, 0), 1)
  assert.strictEqual(await last.value, 'ok')
})

test('in one job, the first of an abort and a notification counts', async () => {
  for (const order of ['abort', 'notify']) {
    const { array, controller, wait } = start()
    const value = wait()
    const behind = waitAsync(array, 0, 0).value
    if (order === 'abort') controller.abort()
    assert.strictEqual(notify(array, 0, 1), 1)
    if (order === 'notify') controller.abort()
    if (order === 'abort') {
      assert.strictEqual(await rejection(value), 'aborted')
    } else {
      assert.strictEqual(await value, 'ok')
      assert.strictEqual(notify(array, 0, 1), 1)
    }
    assert.strictEqual(await behind, 'ok')
  }
})

test('an abort after another thread has notified comes too late, even before that is heard of', async t => {
  const array = words(3)
  const other = startWorker(t, array, ({ Atomics, data }) => {
    Atomics.store(data, 1, 1)
    while (Atomics.load(data, 2) === 0);
    const woken = Atomics.notify(data, 0)
    Atomics.store(data, 1, 2)
    return woken
  })
  await until(() => Atomics.load(array, 1) === 1, 'the other thread runs')
  const controller = new TinyController()
  const { value } = waitAsync(array, 0, 0, undefined, { signal: controller.signal })
  Atomics.store(array, 2, 1)
  while (Atomics.load(array, 1) !== 2);
  controller.abort()
  assert.strictEqual(await value, 'ok')
  assert.strictEqual(await other.done(), 1)
})

test('what is settled in one batch, and aborted by the first of them, stays settled', async () => {
  const { array, controller, wait } = start()
  const seen = []
  for (let n = 0; n < 20; n++) {
    wait().catch(reason => reason).then(outcome => {
      seen.push(outcome)
      if (outcome === 'ok') controller.abort()
    })
  }
  assert.strictEqual(notify(array, 0, 15), 15)
  await until(() => seen.length === 20, 'all have ended')
  assert.deepStrictEqual(seen.sort(), [].concat(Array(5).fill('aborted'), Array(15).fill('ok')))
  assert.strictEqual(waiterCount(array, 0), 0)
})

test('an overdue wait of a busy thread that is aborted has one outcome, and takes no notification', async () => {
  const { array, controller, wait } = start()
  const aborted = rejection(wait(1))
  const behind = waitAsync(array, 0, 0)
  busy(20)
  controller.abort()
  assert.strictEqual(notify(array, 0, 1), 1)
  assert.strictEqual(await behind.value, 'ok')
  assert.strictEqual(await aborted, 'aborted')
  assert.strictEqual(waiterCount(array, 0), 0)
})

test(
  'aborts against notifications and timeouts of another thread: one outcome each, and none lost',
  { timeout: 60000 },
  async t => {
    const array = words(3)
    const other = startWorker(t, array, ({ Atomics, data }) => {
      let woken = 0
      Atomics.store(data, 2, 1)
      while (Atomics.load(data, 1) === 0) {
        for (let spins = 0; spins < 300; spins++);
        woken += Atomics.notify(data, 0, 1)
      }
      return woken + Atomics.notify(data, 0)
    })
    await until(() => Atomics.load(array, 2) === 1, 'the other thread runs')
    const counts = { ok: 0, 'timed-out': 0, aborted: 0 }
    let rounds = 0
    for (; rounds < 200 || counts.ok === 0 || counts.aborted === 0; rounds++) {
      const controller = new TinyController({ reason: 'aborted' })
      const waits = Array.from({ length: 50 }, (_, n) => {
        const { value } = waitAsync(array, 0, 0, n % 5 === 0 ? 0.2 : undefined, { signal: controller.signal })
        return value.catch(reason => reason)
      })
      if (rounds % 3 === 0) await turn()
      controller.abort()
      assert.ok(controller.listeners.size <= 1)
      for (const outcome of await Promise.all(waits)) counts[outcome]++
    }
    Atomics.store(array, 1, 1)
    assert.strictEqual(await other.done(), counts.ok)
    assert.strictEqual(counts.ok + counts['timed-out'] + counts.aborted, 50 * rounds)
    assert.strictEqual(waiterCount(array, 0), 0)
  }
)

// ——— what begins no wait ———

test('a signal that is aborted already: a promise that is rejected, and no waiter', async () => {
  const { array, controller } = start()
  controller.abort()
  const result = waitAsync(array, 0, 0, undefined, { signal: controller.signal })
  assert.strictEqual(result.async, true)
  assert.deepStrictEqual([waiterCount(array, 0), controller.listeners.size], [0, 0])
  assert.strictEqual(await rejection(result.value), 'aborted')
})

test('another value, and a timeout of 0, come before an aborted signal: there is no wait to cancel', () => {
  const array = words(1)
  const asked = []
  const signal = Object.defineProperty({}, 'aborted', { get () { asked.push('aborted'); return true } })
  signal.addEventListener = () => asked.push('addEventListener')
  assert.deepStrictEqual(waitAsync(array, 0, 1, undefined, { signal }), { async: false, value: 'not-equal' })
  assert.deepStrictEqual(waitAsync(array, 0, 0, 0, { signal }), { async: false, value: 'timed-out' })
  assert.deepStrictEqual(waitAsync(array, 0, 0, -1, { signal }), { async: false, value: 'timed-out' })
  assert.deepStrictEqual(asked, [])
  array[0] = 1
  assert.deepStrictEqual(waitAsync(array, 0, 0, 0, { signal }), { async: false, value: 'not-equal' })
})

test('a BigInt64Array', { skip: NO_BIGINT64 }, async () => {
  const array = new BigInt64Array(new SharedArrayBuffer(16))
  const big = BigInt(2) ** BigInt(40)
  array[1] = big
  const controller = new TinyController({ reason: 'aborted' })
  const { signal } = controller
  const [first, second] = [0, 1].map(() => waitAsync(array, 1, big, undefined, { signal }).value)
  assert.deepStrictEqual(waitAsync(array, 1, BigInt(0), undefined, { signal }), { async: false, value: 'not-equal' })
  assert.strictEqual(notify(array, 1, 1), 1)
  controller.abort()
  assert.strictEqual(await rejection(second), 'aborted')
  assert.strictEqual(await first, 'ok')
  assert.deepStrictEqual(waitAsync(array, 1, BigInt(0), undefined, { signal }), { async: false, value: 'not-equal' })
  assert.strictEqual(await rejection(waitAsync(array, 1, big, undefined, { signal }).value), 'aborted')
})

// ——— arguments ———

test('wrong arguments are the same errors as without a signal, and come before those of the options', () => {
  const array = words(2)
  const log = []
  const argument = (name, value) => converted(value, () => { log.push(name) })
  const options = { get signal () { log.push('signal'); return undefined } }
  const symbol = Symbol('s')
  const arrays = ['x', new Uint8Array(4), new Int32Array(2)]
  const rests = [[-1, 0], [2, 0], [0, symbol], [0, 0, symbol]]
  for (const args of arrays.map(wrong => [wrong, 0, 0]).concat(rests.map(rest => [array, ...rest]))) {
    const outcomeWith = fifth => outcomeOf(waitAsync, Object.assign([], args, { 4: fifth }))
    const given = outcomeWith({ signal: 1 })
    assert.deepStrictEqual(given, outcomeWith(undefined))
    assert.strictEqual(given.length, 2)
  }
  waitAsync(array, argument('index', 0), argument('value', 1), argument('timeout', 5), options)
  assert.deepStrictEqual(log, ['index', 'value', 'timeout', 'signal'])
})

test('wrong options are thrown, with the texts of the locks, also where there would be no wait', () => {
  const array = words(1)
  const signal = 'signal must be an AbortSignal (an object with aborted and addEventListener), not '
  const texts = [
    [null, 'options must be an object, not null'],
    [1, 'options must be an object, not the number 1'],
    [() => {}, 'options must be an object, not a function'],
    [{ timeout: 5 }, 'options may have signal, not "timeout"'],
    [{ signals: 5 }, 'options may have signal, not "signals"'],
    [{ signal: null }, signal + 'null'],
    [{ signal: 1 }, signal + 'the number 1'],
    [{ signal: {} }, signal + 'an object'],
    [{ signal: { aborted: false } }, signal + 'an object'],
    [{ signal: { addEventListener () {} } }, signal + 'an object']
  ]
  for (const [options, text] of texts) {
    const error = { name: 'TypeError', message: `waitAsync: ${text}` }
    for (const value of [0, 1]) assert.throws(() => waitAsync(array, 0, value, undefined, options), error)
  }
  assert.strictEqual(waiterCount(array, 0), 0)
})

test('options without a signal change nothing', async () => {
  const array = words(1)
  const results = [undefined, {}, { signal: undefined }, Object.create(null)].map(options =>
    waitAsync(array, 0, 0, undefined, options)
  )
  assert.strictEqual(notify(array, 0), 4)
  for (const { value } of results) assert.strictEqual(await value, 'ok')
})

test('the installed function ignores a fifth argument, and both have the length of the standard', async () => {
  const array = words(1)
  assert.notStrictEqual(waitAsync, Atomics.waitAsync)
  assert.deepStrictEqual([waitAsync.length, Atomics.waitAsync.length, waitAsync.name], [4, 4, 'waitAsync'])
  const controller = new TinyController()
  const fail = () => assert.fail('it was read')
  const hostile = new Proxy({}, { get: fail, ownKeys: fail })
  const waits = [{ signal: controller.signal }, null, 5, hostile].map(
    fifth => Atomics.waitAsync(array, 0, 0, undefined, fifth).value
  )
  assert.strictEqual(controller.listeners.size, 0)
  controller.abort()
  waits.push(Atomics.waitAsync(array, 0, 0, undefined, { signal: controller.signal }).value)
  assert.strictEqual(Atomics.notify(array, 0), 5)
  for (const wait of waits) assert.strictEqual(await wait, 'ok')
})

test('a signal that throws: the call throws that, and no wait begins', () => {
  const array = words(1)
  const error = new Error('of the signal')
  const fail = () => { throw error }
  const signals = [
    Object.defineProperty({ addEventListener () {} }, 'aborted', { get: fail }),
    Object.defineProperty({ aborted: true, addEventListener () {} }, 'reason', { get: fail }),
    { aborted: false, addEventListener: fail }
  ]
  for (const signal of signals) {
    assert.throws(() => waitAsync(array, 0, 0, undefined, { signal }), thrown => thrown === error)
    assert.strictEqual(waiterCount(array, 0), 0)
  }
})

test('a signal that aborts while it gets its listener', async () => {
  const array = words(1)
  const signal = {
    aborted: false,
    reason: 'at once',
    addEventListener (_, listener) {
      this.aborted = true
      listener()
    }
  }
  const { async, value } = waitAsync(array, 0, 0, undefined, { signal })
  assert.deepStrictEqual([async, waiterCount(array, 0)], [true, 0])
  assert.strictEqual(await rejection(value), 'at once')
})

test('a reason whose getter waits and notifies: each wait has one outcome', async () => {
  const { array, controller, wait } = start()
  const inner = new TinyController({ reason: 'inner' })
  const rest = []
  Object.defineProperty(controller.signal, 'reason', {
    get () {
      rest.push(rejection(waitAsync(array, 0, 0, undefined, { signal: inner.signal }).value))
      if (rest.length === 2) notify(array, 0, 1)
      return 'aborted'
    }
  })
  const waits = [1, 2, 3].map(() => wait())
  controller.abort()
  inner.abort()
  // The second was still in the line when its reason was read: the notification was its own.
  assert.deepStrictEqual(await Promise.all(waits.map(wait => wait.catch(reason => reason))), [
    'aborted',
    'ok',
    'aborted'
  ])
  assert.deepStrictEqual(await Promise.all(rest), ['inner', 'inner', 'inner'])
  assert.strictEqual(waiterCount(array, 0), 0)
})

// ——— many ———

test('10 000 waits on one signal have one listener, which goes with the last of them', { timeout: 60000 }, async () => {
  const array = words(100)
  const controller = new TinyController({ reason: 'aborted' })
  const { signal } = controller
  let added = 0
  const { addEventListener } = signal
  signal.addEventListener = function () {
    added++
    return addEventListener.apply(this, arguments)
  }
  const wait = () => Array.from({ length: 10000 }, (_, n) => waitAsync(array, n % 100, 0, undefined, { signal }).value)
  const notified = wait()
  assert.deepStrictEqual([added, controller.listeners.size], [1, 1])
  for (let index = 0; index < 100; index++) assert.strictEqual(notify(array, index), 100)
  for (const outcome of await Promise.all(notified)) assert.strictEqual(outcome, 'ok')
  assert.strictEqual(controller.listeners.size, 0)
  const order = []
  const aborted = wait().map((promise, n) => promise.catch(() => { order.push(n) }))
  assert.deepStrictEqual([added, controller.listeners.size], [2, 1])
  controller.abort()
  for (let index = 0; index < 100; index++) assert.strictEqual(waiterCount(array, index), 0)
  await Promise.all(aborted)
  assert.deepStrictEqual(order, order.map((_, n) => n))
  assert.strictEqual(controller.listeners.size, 0)
})

// ——— threads ———

test('ref and unref know it while it is pending', async () => {
  const { array, controller, wait } = start({})
  const value = wait()
  assert.deepStrictEqual([api.unref(value), api.unref(value), api.ref(value)], [true, true, true])
  controller.abort()
  assert.deepStrictEqual([api.unref(value), api.ref(value)], [false, false])
  await rejection(value)
  const notified = waitAsync(array, 0, 0, undefined, { signal: new TinyController().signal }).value
  notify(array, 0)
  assert.strictEqual(api.unref(notified), true)
  assert.strictEqual(await notified, 'ok')
  assert.strictEqual(api.ref(notified), false)
})

test('with a timeout it holds the event loop, unless it is unref\'d', t =>
  prints(t, ['timed-out', 'end'], ({ api, say, words }) => {
    const signal = { aborted: false, addEventListener () {} }
    const array = words(1)
    api.waitAsync(array, 0, 0, 100, { signal }).value.then(say)
    api.unref(api.waitAsync(array, 0, 0, 60000, { signal }).value)
    process.on('exit', () => say('end'))
  }))

for (const [aborts, outcome] of [[false, 'ok'], [true, 'AbortError']]) {
  const title = aborts
    ? 'an aborted one does not hold the event loop'
    : 'without a timeout it holds the event loop as long as another thread may notify it'
  test(title, t =>
    prints(t, [outcome, 'end'], async ({ api, data: aborts, say, startWorker, until, words }) => {
      const array = words(2)
      const other = startWorker({ aborts, array }, async ({ Atomics, data: { aborts, array }, sleep }) => {
        Atomics.store(array, 1, 1)
        await sleep(aborts ? 60000 : 150)
        while (Atomics.notify(array, 0) === 0) await sleep(1)
      })
      await until(() => array[1] === 1)
      other.worker.unref()
      const signal = { aborted: false, addEventListener (_, listener) { this.listener = listener } }
      api.waitAsync(array, 0, 0, undefined, { signal }).value.then(say, ({ name }) => say(name))
      if (aborts) setImmediate(() => signal.listener())
      process.on('exit', () => say('end'))
    }, aborts))
}

test('it is gone when its worker is terminated, and the next one gets the notification', async t => {
  const array = words(1)
  const worker = startWorker(t, array, ({ api, data }) => {
    const signal = { aborted: false, addEventListener () {} }
    api.waitAsync(data, 0, 0, undefined, { signal })
    setInterval(() => {}, 1000)
  })
  await until(() => waiterCount(array, 0) === 1, 'the worker waits')
  const { value } = waitAsync(array, 0, 0, undefined, { signal: new TinyController().signal })
  await worker.terminate()
  assert.strictEqual(waiterCount(array, 0), 1)
  assert.strictEqual(notify(array, 0, 1), 1)
  assert.strictEqual(await value, 'ok')
})

test('a snapshot has it, with its time', async () => {
  const { controller, wait } = start({})
  const value = wait()
  busy(2)
  const [entry, ...rest] = api.snapshot().waiting
  assert.deepStrictEqual([rest, entry.kind, entry.blocked], [[], 'wait', false])
  assert.ok(entry.milliseconds >= 2, String(entry.milliseconds))
  controller.abort()
  await rejection(value)
  assert.deepStrictEqual(api.snapshot().waiting, [])
})

test('it outlives an uninstall', async () => {
  const array = words(1)
  const [first, second] = [new TinyController({ reason: 'aborted' }), new TinyController()]
  const [aborted, notified] = [first, second].map(({ signal }) => waitAsync(array, 0, 0, undefined, { signal }).value)
  assert.strictEqual(api.uninstall(), true)
  try {
    first.abort()
    assert.strictEqual(notify(array, 0), 1)
    assert.strictEqual(await rejection(aborted), 'aborted')
    assert.strictEqual(await notified, 'ok')
  } finally {
    api.install({ force: true })
  }
})
