'use strict'
// flags: --expose-gc
// nodes: >=12.17 (older Nodes have no AsyncLocalStorage)

// Callbacks run in the asynchronous context of their call, waited or not; and what the package starts when it is first
// used keeps no context of the program's.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { needsChannels, subscribe } = require('../../fixtures/channels')
const { turns } = require('../../fixtures/family-toolbox')
const { TinyController } = require('../../fixtures/lock-toolbox')
const { startWorker } = require('../../fixtures/queue-toolbox')
const { runForJSON } = require('../../fixtures/run-node')
const size = require('../../fixtures/size')

const als = new AsyncLocalStorage()

/** Makes a situation with a token, which `hold` takes, in the way. */
const heldUp = (begin, hold) => ({
  begin,
  async holdUp () {
    const token = hold()
    return () => token.unlock()
  }
})
const locked = (lock, begin) => heldUp(() => begin(lock), () => lock.tryLock())

const newQueue = () => api.Queue.create({ capacity: 1, messageSize: 8 })
/** Makes a situation of a queue in which the first call finds what it wants, and the next one waits until `goOn`. */
function queued (isFull, begin, goOn, holdUp = () => {}) {
  const queue = newQueue()
  if (isFull) queue.tryPut(1)
  return {
    begin: () => begin(queue),
    async holdUp () {
      holdUp(queue)
      return () => goOn(queue)
    }
  }
}
const taken = begin => queued(true, begin, queue => queue.tryPut(2))

/** Each: begins something whose callback reports to `see`; and how to hold it up, which returns what lets it go on. */
const forms = {
  'locks.request': see => ({
    begin: () => api.locks.request('a', see),
    async holdUp () {
      let release
      await new Promise(held => api.locks.request('a', () => new Promise(resolve => { release = resolve; held() })))
      return release
    }
  }),
  executeLocked: see => locked(new api.AsyncLock(), lock => lock.executeLocked(see)),
  'RwLock executeLocked': see => locked(new api.RwLock(), lock => lock.executeLocked(see)),
  executeShared: see => locked(new api.RwLock(), lock => lock.executeShared(see)),
  use (see) {
    const semaphore = new api.Semaphore()
    semaphore.release()
    return heldUp(() => semaphore.use(1, see), () => semaphore.tryHold())
  },
  'a predicate of waitForAsync' (see) {
    const [lock, condition] = [new api.AsyncLock(), new api.Condition()]
    let met = true
    const predicate = () => {
      see()
      return met
    }
    return {
      begin: () => lock.executeLocked(token => condition.waitForAsync(token, predicate)),
      async holdUp () {
        met = false
        return () => {
          met = true
          condition.notify()
        }
      }
    }
  },
  'what follows lockAsync': see => locked(new api.AsyncLock(), async lock => {
    const token = await lock.lockAsync()
    see()
    token.unlock()
  }),
  'what follows locks.holdAsync': see => heldUp(async () => {
    const token = await api.locks.holdAsync('b')
    see()
    token.unlock()
  }, () => api.locks.tryHold('b')),
  'use of a Queue': see => taken(queue => queue.use(see)),
  'what follows takeAsync': see => taken(queue => queue.takeAsync().then(see)),
  'what follows takeManyAsync': see => taken(async queue => {
    await queue.takeManyAsync(2)
    see()
  }),
  'what follows a message of an iterator': see => taken(async queue => {
    for await (const message of queue.messages()) {
      see(message)
      break
    }
  }),
  'what follows putAsync': see => queued(false, async queue => {
    await queue.putAsync(1)
    see()
  }, queue => queue.tryTake()),
  'what follows onIdle': see => queued(false, async queue => {
    await queue.onIdle()
    see()
  }, queue => queue.tryTake(), queue => queue.tryPut(1)),
  'what follows an abort' (see) {
    const lock = new api.AsyncLock()
    lock.tryLock()
    const { signal, abort } = new TinyController()
    const goOn = () => als.run('the abort', abort)
    return { begin: () => lock.lockAsync({ signal }).catch(see), holdUp: async () => goOn, onlyHeldUp: true }
  }
}

for (const name of Object.keys(forms)) {
  test(`${name}: its callback runs in the context of its call`, async () => {
    const seen = new Set()
    const { begin, holdUp, onlyHeldUp } = forms[name](() => { seen.add(als.getStore()) })
    if (!onlyHeldUp) await als.run('free', begin)
    assert.deepStrictEqual(Array.from(seen), onlyHeldUp ? [] : ['free'])
    seen.clear()
    const goOn = await als.run('the holder', holdUp)
    const waiting = als.run('held up', begin)
    await turns(1)
    als.run('the release', goOn)
    await waiting
    assert.deepStrictEqual(Array.from(seen), ['held up'])
  })
}

test('blocking forms call back in the context of their call', async t => {
  const seen = await startWorker(t, null, ({ api, require }) => {
    const { AsyncLocalStorage } = require('async_hooks')
    const als = new AsyncLocalStorage()
    const [lock, rw, semaphore] = [new api.AsyncLock(), new api.RwLock(), new api.Semaphore()]
    semaphore.release()
    const see = () => als.getStore()
    return als.run('a call', () => [
      lock.executeLockedSync(see), rw.executeLockedSync(see), rw.executeSharedSync(see), semaphore.useSync(1, see),
      api.locks.requestSync('a', see)
    ])
  }).done()
  assert.deepStrictEqual(seen, new Array(5).fill('a call'))
})

test('a subscriber of the channel of waits runs in the context of the wait', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait', ({ outcome }) => `${outcome} ${als.getStore()}`)
  const lock = new api.AsyncLock()
  const token = lock.tryLock()
  await als.run('one', () => lock.lockAsync({ timeout: 1 })).catch(() => {})
  const two = als.run('two', () => lock.executeLocked(() => {}))
  als.run('the release', () => token.unlock())
  await two
  assert.deepStrictEqual(messages, ['timed-out one', 'acquired two'])
})

test('so it does for the waits for a queue and for a name', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait', ({ outcome }) => `${outcome} ${als.getStore()}`)
  const queue = newQueue()
  const taking = als.run('take', () => queue.takeManyAsync(2))
  await als.run('put', () => queue.putAsync(1))
  await taking
  queue.tryPut(1)
  const putting = als.run('put', () => queue.putAsync(2))
  const idle = als.run('idle', () => queue.onIdle())
  als.run('release', () => queue.tryTake())
  await putting
  await als.run('clear', () => queue.clearAsync())
  await idle
  const token = api.locks.tryHold('c')
  await als.run('late', () => api.locks.holdAsync('c', { timeout: 1 })).catch(() => {})
  const holding = als.run('hold', () => api.locks.holdAsync('c'))
  als.run('release', () => token.unlock())
  ;(await holding).unlock()
  assert.deepStrictEqual(messages,
    ['acquired take', 'acquired put', 'acquired idle', 'timed-out late', 'acquired hold'])
})

test('so it does for the lock that a Condition claims after its notification, or its time', needsChannels, async t => {
  const { messages } = subscribe(t, 'wait', () => als.getStore())
  const [lock, condition] = [new api.AsyncLock(), new api.Condition()]
  for (const timeout of [undefined, 1]) {
    let token = lock.tryLock()
    const waiting = als.run('the wait', () => condition.waitAsync(token, { timeout }))
    token = lock.tryLock()
    await als.run('the end', async () => {
      if (timeout === undefined) condition.notify()
      while (lock.waiters === 0) await turns(1)
      token.unlock()
    })
    await waiting
    lock.unlock()
  }
  assert.deepStrictEqual(messages, ['the wait', 'the wait'])
})

const needsWeakRef = { skip: typeof WeakRef !== 'function' && 'this Node has no WeakRef' }
const PROGRAM = require.resolve('../../fixtures/first-context')

/**
 * Whether the contexts of some first calls are collected, as first-context.js says. A test of a Node that cannot is
 * skipped.
 */
async function areCollected (t, calls, { entry, isLoadedThere, main, env }) {
  const probe = () => require('zlib')
  const data = {
    entry: require.resolve(`../../../${entry}`),
    calls: [...calls, probe].map(String),
    isLoadedThere,
    main
  }
  const [node, ...collected] = (await runForJSON(t, ['--expose-gc', PROGRAM, JSON.stringify(data)], { env })).reverse()
  if (!node) t.skip('this Node keeps the context in which one of its modules is required first')
  return collected.reverse()
}

/** The possible first acts of a program, by name. */
const firsts = {
  'a read of waitAsync': ({ waitAsync }) => waitAsync,
  'a wait': ({ waitAsync }) => waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1).value,
  'a lock': async ({ AsyncLock }) => {
    const lock = new AsyncLock()
    const token = lock.tryLock()
    const waiting = lock.lockAsync()
    token.unlock()
    ;(await waiting).unlock()
  },
  'a named lock': ({ locks }) => locks.request('a', () => {}),
  'a name that is held': async ({ locks }) => {
    const token = locks.tryHold('a')
    const waiting = locks.holdAsync('a')
    token.unlock()
    ;(await waiting).unlock()
  },
  'a queue': async ({ Queue }) => {
    const queue = Queue.create({ capacity: 1, messageSize: 8 })
    const waiting = queue.takeManyAsync(2)
    queue.tryPut(1)
    await waiting
    await queue.clearAsync()
    await queue.onIdle()
  },
  'an abort': async ({ AsyncLock }) => {
    const lock = new AsyncLock()
    lock.tryLock()
    const controller = new AbortController()
    const waiting = lock.lockAsync({ signal: controller.signal })
    controller.abort()
    await waiting.catch(() => {})
  }
}
if (typeof AbortController !== 'function') delete firsts['an abort']

const names = Object.keys(firsts)
let main = 0
for (const [place, entry] of ['index', 'force', 'keep-alive', 'pure', 'web-locks'].entries()) {
  for (const isLoadedThere of [false, true].filter(isThere => size.has(2, place + Number(isThere)))) {
    const where = isLoadedThere ? ', loaded there' : ''
    test(`${entry}${where}: nothing keeps the context of what comes first`, needsWeakRef, async t => {
      const options = { entry, isLoadedThere, main: main++ % names.length }
      const collected = await areCollected(t, names.map(name => firsts[name]), options)
      assert.deepStrictEqual(names.filter((name, n) => !collected[n]), [])
    })
  }
}

test('waits that are watched for stalls keep no context of earlier ones', needsWeakRef, async t => {
  const waits = async ({ AsyncLock }, outside) => {
    const lock = new AsyncLock()
    const wait = async () => {
      const token = lock.tryLock()
      const next = lock.lockAsync()
      setTimeout(() => { token.unlock() }, 2)
      ;(await next).unlock()
    }
    await wait()
    // The next waits, in another context, keep the watch going.
    outside.runInAsyncScope(async () => { for (let n = 0; n < 500; n++) await wait() })
  }
  const options = { entry: 'force', isLoadedThere: false, main: 0, env: { ATOMICS_WAITASYNC_STALL: '1' } }
  assert.deepStrictEqual(await areCollected(t, [waits], options), [true])
})
