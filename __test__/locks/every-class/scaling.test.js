'use strict'
// timeout: 300

// Costs that must not grow with the number of threads that wait for the same, or with what threads hold.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { memory } = require('../../fixtures/lock-toolbox')
const { median, now, onAQuietMachine, sleep, startWorker, until } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')

const { AsyncLock, RwLock, snapshot, waitAsync } = api

const THREADS = 64
/** How much larger an equal time may be. A search for deadlocks by each sleeper made it five to ten times as large. */
const FACTOR = 3
/** Milliseconds in which threads do the same again and again, and how often that is measured. */
const LOOP = size(1000, 300)
const ROUNDS = size(2, 1)

/** Returns the milliseconds of processor time that the process has taken. */
function processorTime () {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}

/** Windows counts it in steps of 16 ms: too long for what takes less. */
const shortTime = process.platform === 'win32' ? now : processorTime

/** Returns how long a call takes. */
function timeOf (call, clock = now) {
  const begin = clock()
  call()
  return clock() - begin
}

const least = (times, measure) => Math.min(...Array.from({ length: times }, measure))
const medianOf = (times, measure) => median(Array.from({ length: times }, measure))

/** Tests bounds on time. */
const testOfTime = (name, body) => test(name, { timeout: 120000 }, t => onAQuietMachine(() => body(t)))

/** Returns the shortest of some times: other work only adds to them. By turns, with and without a timeout. */
async function byTurns (measure) {
  const times = { timed: Infinity, untimed: Infinity }
  for (let round = 0; round < ROUNDS; round++) {
    times.timed = Math.min(times.timed, await measure({ timeout: 1e9 }))
    times.untimed = Math.min(times.untimed, await measure({}))
  }
  return times
}

/** Starts threads that all do the same when told so. */
async function crowd (t) {
  const sab = memory(64)
  const state = new Int32Array(sab, 16, 2)
  const threads = Array.from({ length: THREADS }, () => startWorker(t, sab, ({ api, data: sab, post, require }) => {
    const { parentPort } = require('worker_threads')
    const state = new Int32Array(sab, 16, 2)
    const lock = new api.RwLock(sab)
    const nothing = () => {}
    const operations = {
      RwLock: options => lock.lock(options).unlock(),
      name: options => api.locks.requestSync('costs', options, nothing)
    }
    parentPort.on('message', ({ kind, options, once }) => {
      let done = 0
      do {
        operations[kind](options)
        done++
      } while (!once && Atomics.load(state, 0) === 0)
      post(done)
    })
    post('ready')
    return new Promise(() => {})
  }))
  await Promise.all(threads.map(thread => thread.next()))
  return {
    sab,
    state,
    /** Gives how often they have done it. */
    async do (request) {
      Atomics.store(state, 0, 0)
      for (const { worker } of threads) worker.postMessage(request)
      const counts = await Promise.all(threads.map(thread => thread.next()))
      return counts.reduce((sum, count) => sum + count, 0)
    },
    end: () => Promise.all(threads.map(thread => thread.terminate()))
  }
}

const bounded = (times, what) => assert.ok(times.untimed < FACTOR * times.timed, `${what}: ${JSON.stringify(times)}`)

test(`${THREADS} threads that lock or block take no more time than with a timeout`, { timeout: 240000 }, async t => {
  const threads = await crowd(t)
  for (const kind of ['RwLock', 'name']) {
    await onAQuietMachine(async () => bounded(await byTurns(async (options) => {
      const begin = processorTime()
      const counted = threads.do({ kind, options })
      await sleep(LOOP)
      Atomics.store(threads.state, 0, 1)
      const done = await counted
      return (processorTime() - begin) / done
    }), kind))
  }
  const lock = new RwLock(threads.sab)
  await onAQuietMachine(async () => bounded(await byTurns(async (options) => {
    const token = lock.tryLock()
    const done = threads.do({ kind: 'RwLock', options, once: true })
    const begin = processorTime()
    await until(() => lock.waiters === THREADS)
    // In its first second a blocked thread looks a few times whether it is to end.
    await sleep(1000)
    const took = processorTime() - begin
    token.unlock()
    assert.strictEqual(await done, THREADS)
    return took
  }), 'blocked'))
  await threads.end()
})

/** Runs `body` while this thread holds so many locks. */
async function whileHolding (count, body) {
  const sab = memory(4 * count)
  const tokens = Array.from({ length: count }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }).tryLock())
  try {
    return await body(sab)
  } finally {
    while (tokens.length > 0) tokens.pop().unlock()
  }
}

testOfTime('a snapshot takes twenty times as long for twenty times as many locks', async () => {
  const [few, many] = [3000, 60000]
  const measure = count => whileHolding(count, () => least(3, () => timeOf(() => {
    assert.strictEqual(snapshot().held.length, count)
  }, shortTime)))
  const times = [await measure(few), await measure(many)]
  assert.ok(times[1] < 2 * (many / few) * times[0], JSON.stringify(times))
})

/**
 * Returns the milliseconds of processor time of two blocking threads: each holds a lock, and blocks for a third one
 * again and again.
 */
async function timeOfBlocking (t) {
  const sab = memory(64)
  const gate = new Int32Array(sab, 32, 1)
  const threads = [0, 4].map(mine => startWorker(t, { sab, mine }, ({ api, Atomics, data: { sab, mine } }) => {
    const [own, lock] = [mine, 8].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    const [gate, nothing] = [new Int32Array(sab, 32, 1), new Int32Array(sab, 36, 1)]
    own.lock()
    Atomics.add(gate, 0, 1)
    Atomics.wait(gate, 0, 1)
    Atomics.notify(gate, 0)
    for (let n = 0; n < 500; n++) lock.executeLockedSync(() => Atomics.wait(nothing, 0, 0, 0.1))
  }))
  await until(() => Atomics.load(gate, 0) === 2)
  const begin = processorTime()
  await Promise.all(threads.map(thread => thread.done()))
  const time = processorTime() - begin
  await Promise.all(threads.map(thread => thread.terminate()))
  return time
}

testOfTime('threads block as fast beside one that holds 100 000 locks', async t => {
  const times = { 0: Infinity, 100000: Infinity }
  for (let round = 0; round < size(3, 2); round++) {
    for (const count of Object.keys(times)) {
      times[count] = Math.min(times[count], await whileHolding(Number(count), () => timeOfBlocking(t)))
    }
  }
  assert.ok(times[100000] < 2 * times[0], JSON.stringify(times))
})

/** Releases locks, of which a thread holds so many. Milliseconds of processor time for each release. */
const orders = {
  'the oldest first, while others are taken' (locks, count) {
    const tokens = locks.slice(0, count).map(lock => lock.tryLock())
    const turns = 3 * count
    const begin = shortTime()
    for (let n = 0; n < turns; n++) {
      tokens.push(locks[(count + n) % (2 * count)].tryLock())
      tokens[n].unlock()
    }
    const time = (shortTime() - begin) / turns
    for (const token of tokens.slice(turns)) token.unlock()
    return time
  },
  'the latest first, after an older one' (locks, count) {
    const tokens = locks.slice(0, count).map(lock => lock.tryLock())
    tokens[0].unlock()
    const begin = shortTime()
    while (tokens.length > 1) tokens.pop().unlock()
    return (shortTime() - begin) / count
  }
}
for (const [order, release] of Object.entries(orders)) {
  testOfTime(`releasing ${order}, takes no longer for twenty times as many locks`, () => {
    const [few, many] = [1000, 20000]
    const sab = memory(8 * many)
    const locks = Array.from({ length: 2 * many }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
    const times = [few, many].map(count => least(5, () => release(locks, count)))
    assert.ok(times[1] < 5 * times[0], JSON.stringify(times))
  })
}

/** Returns locks that another thread holds, and a way to end that. */
async function busyLocks (t, count) {
  const sab = memory(4 * count)
  const thread = startWorker(t, { sab, count }, async ({ api, data: { sab, count }, post, receive }) => {
    const tokens = Array.from({ length: count }, (_, n) => new api.AsyncLock(sab, { byteOffset: 4 * n }).lock())
    post('holds')
    await receive()
    for (const token of tokens) token.unlock()
  })
  await thread.next()
  return {
    sab,
    locks: Array.from({ length: count }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n })),
    async end () {
      thread.worker.postMessage('release')
      await thread.done()
      await thread.exited
    }
  }
}

const bounds = (few, many) => assert.ok(many < FACTOR * few, `${few} ms, ${many} ms`)

const OTHERS = size(200000, 100000)

testOfTime(`lockAsync on a busy lock costs the same while the thread holds ${OTHERS} others`, async t => {
  const CLAIMS = 600
  const busy = await busyLocks(t, 2 * CLAIMS)
  const claims = []
  const claim = () => timeOf(() => claims.push(busy.locks[claims.length].lockAsync()))
  const measure = () => {
    // Of the first hundreds, each counts some of what is held.
    for (let n = 0; n < CLAIMS / 2; n++) claim()
    return medianOf(CLAIMS / 2, claim)
  }
  const few = measure()
  const many = await whileHolding(OTHERS, measure)
  await busy.end()
  for (const claim of claims) (await claim).unlock()
  bounds(few, many)
})

testOfTime(`blocking for a busy lock costs the same while the thread holds ${OTHERS} others`, async t => {
  const busy = await busyLocks(t, 1)
  const [few, many] = await startWorker(t, [busy.sab, OTHERS], ({ api: { AsyncLock }, data, require }) => {
    const { performance } = require('perf_hooks')
    const [sab, OTHERS] = data
    const lock = new AsyncLock(sab)
    const measure = () => {
      const times = Array.from({ length: 400 }, () => {
        const begin = performance.now()
        lock.lockIfAvailable(0.001)
        return performance.now() - begin
      }).slice(200)
      return times.sort((a, b) => a - b)[100]
    }
    const few = measure()
    const others = new SharedArrayBuffer(4 * OTHERS)
    for (let n = 0; n < OTHERS; n++) new AsyncLock(others, { byteOffset: 4 * n }).lock()
    return [few, measure()]
  }).done()
  await busy.end()
  bounds(few, many)
})

testOfTime('unlock() of a lock that another thread holds throws at once', async t => {
  const busy = await busyLocks(t, 1)
  const fails = lock => timeOf(() => assert.throws(() => lock.unlock(), { code: 'ERR_NOT_LOCKED' }))
  const [held, free] = [busy.locks[0], new AsyncLock(memory(4))].map(lock => medianOf(101, () => fails(lock)))
  await busy.end()
  // It looked again and again for 10 ms.
  assert.ok(held < 50 * free, `${held} ms, ${free} ms`)
})

testOfTime('timeouts are on time while a claim waits and 100 000 locks are held', () => whileHolding(1e5, async sab => {
  const waiting = new AsyncLock(sab).lockAsync()
  const array = new Int32Array(memory(4))
  const late = []
  for (let n = 0; n < 200; n++) {
    const begin = now()
    await waitAsync(array, 0, 0, 5).value
    late.push(now() - begin - 5)
  }
  new AsyncLock(sab).unlock()
  ;(await waiting).unlock()
  late.sort((a, b) => a - b)
  // A search for who holds what, with each look at the words of lines, made half of them late by 40 ms.
  assert.ok(late[160] < 10, `a fifth is late by more than ${late[160]} ms`)
}))

test('a lock is not told to have been held for longer than its thread has run', { timeout: 120000 }, async t => {
  const sab = memory(4)
  // What is known of a thread may lie where that of an earlier one did: of one in thirty.
  for (let round = 0; round < size(100, 30); round++) {
    const begin = now()
    const thread = startWorker(t, sab, ({ api, data, post }) => {
      new api.AsyncLock(data).lock()
      post('holds')
      // So that the thread does not end.
      setInterval(() => {}, 1000)
      return new Promise(() => {})
    })
    await thread.next()
    const [{ milliseconds }] = snapshot().held
    assert.ok(milliseconds <= now() - begin, `${milliseconds} ms, in round ${round}`)
    await thread.terminate()
  }
})
