'use strict'
// timeout: 120

// Where those wait that no lock holds up, in snapshots and dumps: for a notification, a message, other parties.

const assert = require('assert')
const { test } = require('../../harness')
const { toldBy } = require('../../fixtures/programs')

/** What waits, by name: of `api`, and of one instance of each class. Those that end with Sync block their thread. */
const ways = ({ api, made: { barrier, condition, empty, full, int32, latch, lock, used } }) => ({
  waitAsyncOfCondition: () => condition.waitAsync(lock.tryLock()),
  waitAsyncOfBarrier: () => barrier.waitAsync(),
  waitAsyncOfLatch: () => latch.waitAsync(),
  takeAsync: () => empty.takeAsync(),
  takeManyAsync: () => empty.takeManyAsync(2),
  use: () => empty.use(() => {}),
  putAsync: () => full.putAsync(2),
  onIdle: () => full.onIdle(),
  waitAsync: () => api.waitAsync(int32, 0, 0),
  waitAsyncWithSignal: () => api.waitAsync(int32, 0, 0, Infinity, { signal: new AbortController().signal }),
  waitOfConditionSync: () => condition.wait(lock.lock()),
  waitOfBarrierSync: () => barrier.wait(),
  waitOfLatchSync: () => latch.wait(),
  takeSync: () => empty.take(),
  takeManySync: () => empty.takeMany(2),
  useSync: () => empty.useSync(() => {}),
  putSync: () => full.put(2),
  idleSync: () => full.idle(),
  waitSync: () => api.wait(int32, 0, 0)
})

test('each wait for a notification says who waits', async t => {
  const env = { ATOMICS_WAITASYNC_STALL: '100000', WAYS: String(ways), ROOT: require.resolve('../../../force') }
  const found = await toldBy(t, { env }, async ({ now, require, sleep, tell }) => {
    const LIMIT = 10000
    const { Worker } = require('worker_threads')
    const api = require(process.env.ROOT)
    const made = {
      barrier: api.Barrier.create({ parties: 100 }),
      condition: new api.Condition(),
      empty: api.Queue.create({ capacity: 2, messageSize: 16 }),
      full: api.Queue.create({ capacity: 1, messageSize: 16 }),
      int32: new Int32Array(new SharedArrayBuffer(4)),
      latch: api.Latch.create({ count: 1 }),
      lock: new api.AsyncLock()
    }
    made.full.tryPut(1)
    const all = (0, eval)(`(${process.env.WAYS})`) // eslint-disable-line no-eval
    const inThread = `
      const { workerData: { root, made, name, ways } } = require('worker_threads')
      const api = require(root)
      const classes = {
        barrier: 'Barrier', condition: 'Condition', empty: 'Queue', full: 'Queue', latch: 'Latch', lock: 'AsyncLock'
      }
      for (const key of Object.keys(classes)) made[key] = new api[classes[key]](made[key])
      eval('(' + ways + ')')({ api, made })[name]()`
    for (const name of Object.keys(all({ api, made }))) {
      if (name === 'waitAsyncWithSignal' && typeof AbortController !== 'function') continue
      if (name.endsWith('Sync')) {
        new Worker(inThread, { eval: true, workerData: { root: process.env.ROOT, made, name, ways: process.env.WAYS } })
          .on('error', error => { throw error })
      } else {
        all({ api, made })[name]()
      }
      const isThere = () => api.snapshot().waiting.some(({ called }) => String(called).includes(`${name} (`))
      // Not until there is one more: a thread that waits in steps is gone at moments.
      for (const end = now() + LIMIT; !isThere() && now() < end;) await sleep(5)
      tell([name, isThere()])
    }
    process.exit()
  })
  assert.ok(found.length >= 18)
  for (const [name, isFound] of found) assert.ok(isFound, name)
})
