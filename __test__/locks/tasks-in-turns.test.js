'use strict'

// Tasks of one thread that take a lock in loops: a promise overtakes no earlier one of its thread, and the event loop
// turns now and then.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { api, entry } = require('../subject')
const { AsyncLock, Condition, Queue, RwLock, Semaphore, locks } = api
const { runChild, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

/** How much may settle between two turns of the event loop. */
const MOST = 64

const newMemory = (bytes = 4) => new SharedArrayBuffer(bytes)

const forever = async (take, body) => { for (;;) if (await take(body) === false) return }

/** By name: gives a function that runs `body` with what is requested, and releases it. */
const rounds = {
  'lockAsync and unlock': (lock = new AsyncLock()) => async body => {
    const token = await lock.lockAsync()
    const goesOn = body()
    await undefined
    token.unlock()
    return goesOn
  },
  'executeLocked, async': (lock = new AsyncLock()) => body => lock.executeLocked(async () => {
    const goesOn = body()
    await undefined
    return goesOn
  }),
  'executeLocked within executeLocked': (outer = new AsyncLock(), lock = new AsyncLock()) => body => (
    outer.executeLocked(() => lock.executeLocked(async () => body()))),
  'executeLocked that fails': (lock = new AsyncLock()) => body => lock.executeLocked(async () => {
    await undefined
    throw body()
  }).catch(goesOn => goesOn),
  'RwLock lockAsync and unlock': (lock = new RwLock()) => async body => {
    const token = await lock.lockAsync()
    const goesOn = body()
    await undefined
    token.unlock()
    return goesOn
  },
  'Semaphore holdAsync and unlock': () => {
    const semaphore = new Semaphore(newMemory())
    semaphore.release()
    return async body => {
      const token = await semaphore.holdAsync()
      const goesOn = body()
      await undefined
      token.unlock()
      return goesOn
    }
  },
  'locks.request, async': () => body => locks.request('in turns', async () => {
    const goesOn = body()
    await undefined
    return goesOn
  }),
  'locks.holdAsync and unlock': () => async body => {
    const token = await locks.holdAsync('in turns')
    const goesOn = body()
    await undefined
    token.unlock()
    return goesOn
  },
  'Condition waitAsync': (lock = new AsyncLock(), condition = new Condition(newMemory())) => async body => {
    const token = await lock.lockAsync()
    condition.notify(1)
    await condition.waitAsync(token, { timeout: 1 })
    const goesOn = body()
    token.unlock()
    return goesOn
  }
}

/** How many tasks it takes until some of them always wait. */
const tasksOf = form => form.includes('fails') ? 8 : 2
/** A notification is not paced: its promise is settled in a turn of its own, or with others in one. */
const isPaced = form => !form.includes('Condition')

for (const form of Object.keys(rounds)) {
  test(`${form}: tasks in loops have equal shares, and timers tick`, async () => {
    const take = rounds[form]()
    const counts = Array.from({ length: tasksOf(form) }, () => 0)
    let [since, most, ticks] = [0, 0, 0]
    const timer = setInterval(() => ticks++, 1)
    const goesOn = n => ticks < 5 || counts[n] < 200
    const turn = () => {
      since = 0
      if (counts.some((_, n) => goesOn(n))) setImmediate(turn)
    }
    setImmediate(turn)
    const body = n => () => {
      counts[n]++
      most = Math.max(most, ++since)
      // A test that fails is to end.
      return goesOn(n) && since < 100 * MOST
    }
    await Promise.all(counts.map((_, n) => forever(take, body(n))))
    clearInterval(timer)
    assert.ok(Math.max(...counts) <= 2 * Math.min(...counts), `${counts}`)
    // Before the first of them waits, each has taken it once.
    if (isPaced(form)) assert.ok(most <= MOST + counts.length, `${most} without a turn of the event loop`)
  })
}

/** By name: gives a function that settles by a message or room that is there. `false`: there is none. */
const backlogs = {
  takeAsync: queue => async body => { body(await queue.takeAsync()) },
  'for await': queue => async body => { for await (const value of queue) body(value) },
  use: queue => body => queue.use(body),
  'use, while puts wait': queue => {
    for (let n = 0; n < 500; n++) queue.putAsync(n)
    return body => queue.use(body)
  },
  putAsync: queue => {
    while (queue.tryTake() !== undefined);
    return async body => { body(await queue.putAsync(1)) }
  }
}

for (const form of Object.keys(backlogs)) {
  test(`Queue: ${form}: a backlog keeps the event loop from no turn`, async () => {
    const queue = Queue.create({ capacity: 1000, messageSize: 16 })
    for (let n = 0; n < 1000; n++) queue.tryPut(n)
    const step = backlogs[form](queue)
    let [since, most, count] = [0, 0, 0]
    const turn = () => {
      since = 0
      if (count < 1000) setImmediate(turn)
    }
    setImmediate(turn)
    const body = () => {
      most = Math.max(most, ++since)
      // Ends `for await`.
      if (++count === 1000) queue.close()
    }
    while (count < 1000) await step(body)
    assert.ok(most <= MOST + 1, `${most} without a turn of the event loop`)
  })
}

test('Queue: promises that settle at once keep their order', async () => {
  const queue = Queue.create({ capacity: 1000, messageSize: 16 })
  const order = []
  const puts = Array.from({ length: 1000 }, (_, n) => queue.putAsync(n).then(() => order.push(n)))
  assert.strictEqual(queue.length, 1000, 'they put at once')
  const take = () => queue.takeAsync().then(value => order.push(value))
  const takes = Array.from({ length: 900 }, take)
  // Later ones find that the event loop has turned, perhaps before the earlier ones do.
  for (let n = 0; n < 100; n++) {
    takes.push(take())
    await new Promise(setImmediate)
  }
  assert.strictEqual(queue.length, 0, 'they take at once')
  await Promise.all(puts.concat(takes))
  const numbers = Array.from({ length: 1000 }, (_, n) => n)
  assert.deepStrictEqual(order, numbers.concat(numbers))
})

test('Queue: of many promises that await a turn, few settle in one, and a later one comes behind them', async () => {
  const queue = Queue.create({ capacity: 500, messageSize: 16 })
  for (let n = 0; n < 401; n++) queue.tryPut(n)
  const order = []
  let [since, most, later] = [0, 0, undefined]
  const turn = () => {
    since = 0
    if (order.length < 401) setImmediate(turn)
  }
  setImmediate(turn)
  const use = () => queue.use(value => {
    order.push(value)
    most = Math.max(most, ++since)
    if (value === 100) later = use()
  })
  await Promise.all(Array.from({ length: 400 }, use))
  await later
  assert.deepStrictEqual(order, Array.from({ length: 401 }, (_, n) => n))
  assert.ok(most <= MOST + 1, `${most} without a turn of the event loop`)
})

const inOrder = {
  takeAsync: queue => queue.takeAsync(),
  takeManyAsync: async queue => (await queue.takeManyAsync(1))[0],
  use: queue => new Promise((resolve, reject) => queue.use(resolve).catch(reject)),
  putAsync: (queue, n) => queue.putAsync(n).then(() => n)
}

for (const form of Object.keys(inOrder)) {
  test(`Queue: ${form}: promises that had to wait, and later ones, come behind those that await a turn`, async () => {
    const [many, waiting] = [5 * MOST, 10]
    const isPut = form === 'putAsync'
    const queue = Queue.create({ capacity: isPut ? many : many + waiting, messageSize: 16 })
    if (!isPut) for (let n = 0; n < many; n++) queue.tryPut(n)
    const order = []
    const begin = n => inOrder[form](queue, n).then(value => { order.push(value) })
    const all = Array.from({ length: many + waiting }, (_, n) => begin(n))
    for (let n = 0; n < waiting; n++) {
      if (isPut) queue.tryTake()
      else queue.tryPut(many + n)
    }
    await Promise.all(all)
    assert.deepStrictEqual(order, Array.from({ length: many + waiting }, (_, n) => n))
  })

  test(`Queue: ${form}: a promise made as another settles comes behind those that await the same turn`, async () => {
    for (let first = MOST + 1; first < MOST + 8; first++) {
      const queue = Queue.create({ capacity: 4 * MOST, messageSize: 16 })
      if (form !== 'putAsync') for (let n = 0; n < 4 * MOST; n++) queue.tryPut(n)
      const order = []
      let count = 0
      const task = async () => {
        const n = count++
        order.push(await inOrder[form](queue, n))
        if (n % 2 === 0) await task()
      }
      await Promise.all(Array.from({ length: first }, task))
      assert.deepStrictEqual(order, Array.from({ length: count }, (_, n) => n))
    }
  })
}

test('Queue: promises that await a turn keep the process alive', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say }) => {
    const queue = api.Queue.create({ capacity: 200, messageSize: 16 })
    for (let n = 0; n < 200; n++) await queue.putAsync(n)
    let sum = 0
    for (let n = 0; n < 200; n++) sum += await queue.takeAsync()
    say(`${sum}`)
  })
  assert.deepStrictEqual([code, lines], [0, ['19900']], stderr)
})

test('a promise leaves the free lock to an earlier one; a try form takes it', async () => {
  const lock = new AsyncLock()
  const first = await lock.lockAsync()
  const order = []
  const second = lock.lockAsync().then(token => { order.push('second'); return token })
  first.unlock()
  const now = lock.tryLock()
  assert.strictEqual(now.unlock(), true)
  const third = lock.executeLocked(() => { order.push('third') })
  assert.deepStrictEqual(order, [])
  assert.strictEqual(lock.waiters, 2)
  assert.strictEqual(lock.locked, false)
  const atOnce = await lock.lockAsync({ timeout: 0 }).catch(error => error)
  assert.strictEqual(atOnce.locked, true, 'it does not wait, so it is a try form')
  atOnce.unlock();
  (await second).unlock()
  await third
  assert.deepStrictEqual(order, ['second', 'third'])
  assert.strictEqual(lock.locked, false)
})

test('the first in line is aborted, or late, while the lock is free: the next one has it', async () => {
  const lock = new AsyncLock()
  const late = []
  for (const how of ['abort', 'timeout']) {
    const controller = typeof AbortController === 'function' ? new AbortController() : undefined
    if (how === 'abort' && !controller) continue
    const first = await lock.lockAsync()
    const options = how === 'abort' ? { signal: controller.signal } : { timeout: 5 }
    const second = lock.lockAsync(options).then(token => token.unlock(), error => late.push(error.name))
    first.unlock()
    const third = lock.lockAsync()
    if (how === 'abort') controller.abort()
    else for (const end = Date.now() + 20; Date.now() < end;);
    (await third).unlock()
    await second
    assert.strictEqual(lock.locked, false)
    assert.strictEqual(lock.waiters, 0)
  }
  assert.ok(late.every(name => name === 'AbortError' || name === 'TimeoutError'), `${late}`)
})

test('a worker unlocks and locks again while a promise of its own waits', { timeout: 60000 }, async t => {
  const source = `
    const { parentPort } = require('worker_threads')
    const { AsyncLock } = require(${JSON.stringify(entry)})
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    async function run () {
      let token = lock.lock()
      const promise = lock.lockAsync()
      for (let n = 0; n < 100; n++) {
        token.unlock()
        token = lock.lock()
        // The promise tries in vain, as this thread has the lock again.
        if (n === 50) await undefined
      }
      token.unlock()
      token = await promise
      parentPort.postMessage(token.unlock() && !lock.locked)
    }
    run()`
  const worker = new Worker(source, { eval: true })
  t.after(() => worker.terminate())
  const told = await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
  assert.strictEqual(told, true)
})

test('a worker behind a promise of main has the lock while main computes', { timeout: 60000 }, async t => {
  const sab = newMemory(8)
  const words = new Int32Array(sab)
  const lock = new AsyncLock(sab)
  const token = await lock.lockAsync()
  const own = lock.lockAsync()
  const source = `
    const { workerData: sab } = require('worker_threads')
    const token = new (require(${JSON.stringify(entry)}).AsyncLock)(sab).lock()
    Atomics.store(new Int32Array(sab), 1, 1)
    token.unlock()`
  const worker = new Worker(source, { eval: true, workerData: sab })
  t.after(() => worker.terminate())
  await until(() => lock.waiters === 2, 'the worker waits')
  token.unlock()
  // The microtask in which the promise tries does not come meanwhile.
  for (const end = Date.now() + 1000 * slowness; Atomics.load(words, 1) === 0 && Date.now() < end;);
  const hadIt = Atomics.load(words, 1)
  ;(await own).unlock()
  assert.strictEqual(hadIt, 1)
})
