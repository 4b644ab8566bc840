'use strict'

// `snapshot().cycles`: rings of threads that wait for one another, blocked or by promises.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { memory } = require('../../fixtures/lock-toolbox')
const { now, startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, RwLock, Semaphore, locks, snapshot } = api

/**
 * A thread that does one step after the other on the memory: `[class, byteOffset, method, ...arguments]`, or `['named', name, method,
 * options]`. A blocking one whose lock is not granted answers with its error's name.
 */
async function actor (t, sab) {
  const worker = startWorker(t, ({ api, data: sab, post, require }) => new Promise(() => {
    const { parentPort, threadId } = require('worker_threads')
    post(threadId)
    parentPort.on('message', ([kind, where, method, ...args]) => {
      const held = new Promise(() => {})
      try {
        if (kind === 'named') api.locks[method](where, args[0], () => held).catch(() => {})
        else Promise.resolve(new api[kind](sab, { byteOffset: where })[method](...args)).then(() => post('done'), () => {})
      } catch (error) {
        post(error.name)
      }
    })
  }), sab)
  worker.done().catch(() => {})
  const threadId = await worker.next()
  return {
    threadId,
    next: worker.next,
    tell: (...step) => { worker.worker.postMessage(step) },
    async does (...step) {
      worker.worker.postMessage(step)
      assert.strictEqual(await worker.next(), 'done')
    }
  }
}

/** The rings once there are so many. */
async function untilCycles (count) {
  let cycles
  await until(() => { cycles = snapshot().cycles; return cycles.length === count }, `there are ${count} cycles`)
  return cycles
}

const linkOf = ({ threadId, holds, waitsFor, blocked }) => [threadId, holds.kind, holds.mode, waitsFor.kind, waitsFor.mode, blocked]
const forever = () => new Promise(() => {})
const unlock = token => { token.unlock() }
const holdsName = name => until(() => snapshot().held.some(entry => entry.name === name), `${name} is held`)
/** A pending promise that does not hold the event loop; what it acquires when the threads of the test have ended is given back. */
const awaits = promise => api.unref(promise) && promise.then(unlock)

test('a cycle through a promise of the main thread is seen, and is no longer once it is broken', async t => {
  const sab = memory(8)
  const [a, b] = [new AsyncLock(sab), new AsyncLock(sab, { byteOffset: 4 })]
  const worker = await actor(t, sab)
  await worker.does('AsyncLock', 4, 'lock')
  const token = a.tryLock()
  awaits(b.lockAsync())
  assert.deepStrictEqual(snapshot().cycles, [])
  worker.tell('AsyncLock', 0, 'lock')
  const [ring] = await untilCycles(1)
  assert.deepStrictEqual(ring.map(linkOf), [
    [0, 'AsyncLock', 'exclusive', 'AsyncLock', 'exclusive', false], [worker.threadId, 'AsyncLock', 'exclusive', 'AsyncLock', 'exclusive', true]
  ])
  assert.deepStrictEqual(Object.keys(ring[0]), ['threadId', 'holds', 'waitsFor', 'blocked', 'certain'])
  assert.deepStrictEqual([ring[0].waitsFor.id, ring[1].waitsFor.id], [ring[1].holds.id, ring[0].holds.id])
  assert.notStrictEqual(ring[0].holds.id, ring[1].holds.id)
  assert.deepStrictEqual(ring.map(({ certain }) => certain), [false, false])
  const { held, waiting, cycles } = snapshot()
  assert.ok(cycles[0].every(({ holds, waitsFor }) => held.includes(holds) && waiting.includes(waitsFor)))
  token.unlock()
  assert.strictEqual(await worker.next(), 'done')
  assert.deepStrictEqual(snapshot().cycles, [])
})

test('a cycle of promises over a named lock and an RwLock is seen', async t => {
  const sab = memory(4)
  const rw = new RwLock(sab)
  const worker = await actor(t, sab)
  worker.tell('named', 'cycles', 'request', {})
  await holdsName('cycles')
  const share = rw.tryLockShared()
  api.unref(locks.request('cycles', { mode: 'shared' }, () => {}))
  worker.tell('RwLock', 0, 'lockAsync')
  const [ring] = await untilCycles(1)
  assert.deepStrictEqual(ring.map(linkOf), [
    [0, 'RwLock', 'shared', 'named', 'shared', false], [worker.threadId, 'named', 'exclusive', 'RwLock', 'exclusive', false]
  ])
  assert.strictEqual(ring[0].waitsFor.name, 'cycles')
  share.unlock()
})

test('a ring of blocked threads that have timeouts is seen, each ring once, and apart from one through promises', async t => {
  const sab = memory(16)
  const workers = await Promise.all([0, 1, 2].map(() => actor(t, sab)))
  for (const [n, worker] of workers.entries()) await worker.does('AsyncLock', 4 * n, 'lock')
  const timeout = 1e6
  workers[0].tell('AsyncLock', 4, 'lockIfAvailable', timeout)
  workers[1].tell('AsyncLock', 8, 'lockIfAvailable', timeout)
  await until(() => [0, 1].every(n => snapshot().waiting.some(({ threadId }) => threadId === workers[n].threadId)))
  assert.deepStrictEqual(snapshot().cycles, [])
  workers[2].tell('AsyncLock', 0, 'lockIfAvailable', timeout)
  const [ring] = await untilCycles(1)
  assert.ok(ring.every(({ certain }) => certain))
  const ids = workers.map(({ threadId }) => threadId)
  const first = ids.indexOf(Math.min(...ids))
  assert.deepStrictEqual(ring.map(({ threadId, blocked }) => [threadId, blocked]), [0, 1, 2].map(n => [ids[(first + n) % 3], true]))

  // Main holds what a fourth thread wants, and awaits what that one and the ring hold.
  const token = new AsyncLock(sab, { byteOffset: 12 }).tryLock()
  const other = await actor(t, memory(4))
  other.tell('named', 'of the fourth', 'request', {})
  await holdsName('of the fourth')
  locks.request('of main', forever)
  await holdsName('of main')
  awaits(new AsyncLock(sab).lockAsync())
  api.unref(locks.request('of the fourth', () => {}))
  other.tell('named', 'of main', 'requestSync', {})
  const cycles = await untilCycles(2)
  assert.deepStrictEqual(cycles.map(ring => ring.map(({ threadId }) => threadId)), [ring.map(({ threadId }) => threadId), [0, other.threadId]])
  assert.deepStrictEqual(cycles[1].map(({ blocked }) => blocked), [false, true])
  token.unlock()
})

test('readers that want to write wait for each other, and so does a reader behind a writer', async t => {
  const sab = memory(12)
  const rw = new RwLock(sab)
  const share = rw.tryLockShared()
  const worker = await actor(t, sab)
  await worker.does('RwLock', 0, 'lockShared')
  worker.tell('RwLock', 0, 'lockAsync')
  await until(() => snapshot().waiting.some(({ threadId }) => threadId === worker.threadId))
  assert.deepStrictEqual(snapshot().cycles, [])
  awaits(rw.lockAsync())
  const [ring] = await untilCycles(1)
  assert.deepStrictEqual(ring.map(linkOf), [[0, 'RwLock', 'shared', 'RwLock', 'exclusive', false], [worker.threadId, 'RwLock', 'shared', 'RwLock', 'exclusive', false]])

  // A thread reads, another waits to write and holds a lock, and the first one's new share waits behind that writer.
  const second = memory(8)
  const [reader, writer] = [await actor(t, second), await actor(t, second)]
  await reader.does('RwLock', 0, 'lockShared')
  writer.tell('RwLock', 0, 'lock', { timeout: 1e6 })
  await until(() => snapshot().waiting.some(({ threadId }) => threadId === writer.threadId))
  reader.tell('RwLock', 0, 'lockSharedAsync')
  const nested = (await untilCycles(2)).find(ring => ring[0].threadId > worker.threadId)
  const links = [[reader.threadId, 'RwLock', 'shared', 'RwLock', 'shared', false], [writer.threadId, 'RwLock', 'exclusive', 'RwLock', 'exclusive', true]]
  assert.deepStrictEqual(nested.map(linkOf), links.sort((a, b) => a[0] - b[0]))
  share.unlock()
})

test('threads that hold permits of a limit wait for each other, as far as one alone leaves too little room', async t => {
  const sab = memory(8)
  const rooms = [0, 4].map(byteOffset => new Semaphore(sab, { permits: 3, byteOffset }))
  const tokens = rooms.map(room => room.tryHold())
  const worker = startWorker(t, ({ api, data: sab, post, require }) => new Promise(() => {
    const rooms = [0, 4].map(byteOffset => new api.Semaphore(sab, { permits: 3, byteOffset }))
    rooms.map(room => room.tryHold())
    rooms[0].holdAsync(2)
    rooms[1].holdAsync(3)
    post(require('worker_threads').threadId)
  }), sab)
  worker.done().catch(() => {})
  const threadId = await worker.next()
  // Beside one permit there is room for two; but no turn for one behind a claim for three.
  awaits(rooms[0].holdAsync(2))
  assert.deepStrictEqual(snapshot().cycles, [])
  awaits(rooms[1].holdAsync())
  const [ring] = await untilCycles(1)
  const [kind, mode] = ['Semaphore', 'permits']
  assert.deepStrictEqual(ring.map(linkOf), [0, threadId].map(id => [id, kind, mode, kind, mode, false]))
  assert.deepStrictEqual(ring.map(({ holds, waitsFor }) => [holds.amount, waitsFor.amount]), [[1, 1], [3, 3]])
  tokens.forEach(unlock)
})

test('no cycle: tasks of one thread for the same lock, permits, chains, and promises of a blocked thread', async t => {
  const sab = memory(16)
  const lock = new AsyncLock(sab)
  const token = lock.tryLock()
  const tasks = Array.from({ length: 100 }, () => lock.executeLocked(() => {}))
  const worker = await actor(t, sab)
  await worker.does('AsyncLock', 4, 'lock')
  worker.tell('AsyncLock', 0, 'lockAsync')
  await until(() => snapshot().waiting.some(({ threadId }) => threadId === worker.threadId))
  assert.deepStrictEqual(snapshot().cycles, [])
  // The worker blocks for permits: then nothing that it awaits matters.
  const other = new AsyncLock(sab, { byteOffset: 4 })
  awaits(other.lockAsync())
  await untilCycles(1)
  worker.tell('Semaphore', 8, 'acquire')
  await untilCycles(0)
  const semaphore = new Semaphore(sab, { byteOffset: 8 })
  semaphore.release()
  assert.strictEqual(await worker.next(), 'done')
  await untilCycles(1)
  token.unlock()
  await Promise.all(tasks)
})

test('threads that keep one order never seem to wait for one another', { timeout: 60000 }, async t => {
  const sab = memory(20)
  const workers = [0, 1, 2].map(seed => startWorker(t, ({ api, data: { sab, seed }, Atomics, randomFrom }) => {
    const random = randomFrom(1 + seed)
    const locks = [0, 4, 8, 12].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    while (Atomics.load(new Int32Array(sab), 4) === 0) {
      const last = 1 + Math.floor(3 * random())
      const tokens = [locks[Math.floor(last * random())].lock(), locks[last].lock()]
      for (const token of tokens) token.unlock()
    }
  }, { sab, seed }))
  const start = now()
  let seen = 0
  while (now() - start < 500 || seen < 100) {
    const { cycles, waiting } = snapshot()
    assert.deepStrictEqual(cycles, [])
    seen += waiting.length
  }
  Atomics.store(new Int32Array(sab), 4, 1)
  await Promise.all(workers.map(worker => worker.done()))
})

test('the cycles among 100 000 entries are found without delay', async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  const worker = await actor(t, sab)
  await worker.does('AsyncLock', 0, 'lock')
  const token = new AsyncLock(sab, { byteOffset: 4 }).tryLock()
  for (let n = 0; n < 1e5; n++) awaits(lock.lockAsync())
  const look = () => {
    const start = now()
    const { waiting, cycles } = snapshot()
    return { waiting: waiting.length, cycles: cycles.length, time: now() - start }
  }
  const before = look()
  worker.tell('AsyncLock', 4, 'lock')
  await untilCycles(1)
  const after = look()
  assert.deepStrictEqual([before.waiting, before.cycles, after.waiting, after.cycles], [1e5, 0, 1e5 + 1, 1])
  // It looks twice.
  assert.ok(after.time < 8 * before.time + 100, `${before.time} ms without a cycle, ${after.time} ms with one`)
  token.unlock()
})
