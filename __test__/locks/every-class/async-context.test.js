'use strict'
// flags: --expose-gc
// nodes: >=12.17 (older Nodes have no AsyncLocalStorage)

// Callbacks run in the asynchronous context of the call that they were given to, whether or not it had to wait; and what the package
// starts when it is first used keeps no context of the program's.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { runForJSON } = require('../../fixtures/run-node')
const { startWorker } = require('../../fixtures/queue-toolbox')

const als = new AsyncLocalStorage()
const turn = () => new Promise(setImmediate)

/** Each: begins something whose callback reports to `see`; and how to hold it up, which returns what lets it go on. */
const forms = {
  'locks.request' (see) {
    const { locks } = api
    return {
      begin: () => locks.request('a', see),
      async holdUp () {
        let release
        await new Promise(held => locks.request('a', () => new Promise(resolve => { release = resolve; held() })))
        return release
      }
    }
  },
  executeLocked: see => locked(new api.AsyncLock(new SharedArrayBuffer(4)), lock => lock.executeLocked(see)),
  'RwLock executeLocked': see => locked(new api.RwLock(new SharedArrayBuffer(4)), lock => lock.executeLocked(see)),
  executeShared: see => locked(new api.RwLock(new SharedArrayBuffer(4)), lock => lock.executeShared(see)),
  use (see) {
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    semaphore.release()
    return {
      begin: () => semaphore.use(1, see),
      async holdUp () {
        const token = semaphore.tryHold()
        return () => token.unlock()
      }
    }
  },
  'a predicate of waitForAsync' (see) {
    const buffer = new SharedArrayBuffer(8)
    const lock = new api.AsyncLock(buffer)
    const condition = new api.Condition(buffer, { byteOffset: 4 })
    let met = true
    return {
      begin: () => lock.executeLocked(token => condition.waitForAsync(token, () => { see(); return met })),
      async holdUp () {
        met = false
        return () => {
          met = true
          condition.notify()
        }
      }
    }
  },
  'what follows lockAsync' (see) {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    return locked(lock, async () => {
      const token = await lock.lockAsync()
      see()
      token.unlock()
    })
  },
  'what follows an abort' (see) {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    const listeners = []
    const signal = { aborted: false, addEventListener: (_, listener) => { listeners.push(listener) } }
    return {
      begin: () => lock.lockAsync({ signal }).catch(see),
      async holdUp () { return () => als.run('the abort', () => { signal.aborted = true; listeners.forEach(listener => listener()) }) },
      onlyHeldUp: true
    }
  }
}

function locked (lock, begin) {
  return {
    begin: () => begin(lock),
    async holdUp () {
      const token = lock.tryLock()
      return () => token.unlock()
    }
  }
}

for (const name of Object.keys(forms)) {
  test(`${name}: its callback runs in the context of its call`, async () => {
    let seen = []
    const { begin, holdUp, onlyHeldUp } = forms[name](() => { seen.push(als.getStore()) })
    if (!onlyHeldUp) {
      await als.run('free', begin)
      assert.deepStrictEqual(Array.from(new Set(seen)), ['free'])
    }
    seen = []
    const goOn = await als.run('the holder', holdUp)
    const waiting = als.run('held up', begin)
    await turn()
    als.run('the release', goOn)
    await waiting
    assert.ok(seen.length > 0)
    assert.deepStrictEqual(Array.from(new Set(seen)), ['held up'])
  })
}

test('blocking forms call back in the context of their call', async t => {
  const seen = await startWorker(t, ({ api, require }) => {
    const { AsyncLocalStorage } = require('async_hooks')
    const als = new AsyncLocalStorage()
    const sab = new SharedArrayBuffer(16)
    const [lock, rw, semaphore] = [new api.AsyncLock(sab), new api.RwLock(sab, { byteOffset: 4 }), new api.Semaphore(sab, { byteOffset: 8 })]
    semaphore.release()
    const see = () => als.getStore()
    return als.run('a call', () => [
      lock.executeLockedSync(see), rw.executeLockedSync(see), rw.executeSharedSync(see), semaphore.useSync(1, see), api.locks.requestSync('a', see)
    ])
  }).done()
  assert.deepStrictEqual(seen, new Array(5).fill('a call'))
})

test('a subscriber of the channel of waits runs in the context of the wait', async t => {
  let diagnostics
  try {
    diagnostics = require('diagnostics_channel')
  } catch (_) {
    t.skip('this Node has no diagnostics_channel')
  }
  const seen = []
  const listener = ({ outcome }) => { seen.push([outcome, als.getStore()]) }
  diagnostics.channel('atomics-waitasync:wait').subscribe(listener)
  t.after(() => diagnostics.channel('atomics-waitasync:wait').unsubscribe(listener))
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  await als.run('one', () => lock.lockAsync({ timeout: 1 })).catch(() => {})
  const two = als.run('two', () => lock.executeLocked(() => {}))
  als.run('the release', () => token.unlock())
  await two
  assert.deepStrictEqual(seen, [['timed-out', 'one'], ['acquired', 'two']])
})

test('so it does for the lock that a Condition claims after its notification, or its time', async t => {
  let diagnostics
  try {
    diagnostics = require('diagnostics_channel')
  } catch (_) {
    t.skip('this Node has no diagnostics_channel')
  }
  const seen = []
  const listener = () => { seen.push(als.getStore()) }
  diagnostics.channel('atomics-waitasync:wait').subscribe(listener)
  t.after(() => diagnostics.channel('atomics-waitasync:wait').unsubscribe(listener))
  const sab = new SharedArrayBuffer(8)
  const lock = new api.AsyncLock(sab)
  const condition = new api.Condition(sab, { byteOffset: 4 })
  for (const [options, end] of [[{}, () => condition.notify()], [{ timeout: 1 }, () => {}]]) {
    let token = lock.tryLock()
    const waiting = als.run('the wait', () => condition.waitAsync(token, options))
    token = lock.tryLock()
    await als.run('the end', async () => {
      end()
      while (lock.waiters === 0) await turn()
      token.unlock()
    })
    await waiting
    lock.unlock()
  }
  assert.deepStrictEqual(seen, ['the wait', 'the wait'])
})

/**
 * Whether the context of the first call of an entry, the source of an async function of the entry's exports, is collected.
 * @param {boolean} [isLoadedThere] whether the entry is loaded in that context, too
 * @param {object} [env] variables of the environment
 */
const isCollected = (t, entry, call, isLoadedThere = false, env = {}) => runForJSON(t, ['--expose-gc', '-e', `
  const { AsyncLocalStorage, AsyncResource } = require('async_hooks')
  const outside = new AsyncResource('outside')
  const load = () => require(${JSON.stringify(require.resolve(`../../../${entry}`))})
  const api = ${isLoadedThere} ? undefined : load()
  const als = new AsyncLocalStorage()
  const turn = () => new Promise(setImmediate)
  let weak
  async function first () {
    const store = { name: 'the first' }
    weak = new WeakRef(store)
    await als.run(store, () => (${call})(api || load()))
  }
  async function main () {
    // The host's own waits do not hold the event loop.
    const holding = setInterval(() => {}, 1000)
    await first()
    clearInterval(holding)
    for (let n = 0; n < 50 && weak.deref() !== undefined; n++) {
      await turn()
      gc()
    }
    console.log(JSON.stringify(weak.deref() === undefined))
  }
  main()`], { env })

const NO_WEAK_REF = typeof WeakRef !== 'function' && 'this Node has no WeakRef'

/** What a program may do first, by name. */
const firsts = {
  'a read of waitAsync': ({ waitAsync }) => waitAsync,
  'a wait': ({ waitAsync }) => waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1).value,
  'a lock': async ({ AsyncLock }) => {
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const waiting = lock.lockAsync()
    token.unlock()
    ;(await waiting).unlock()
  },
  'a named lock': ({ locks }) => locks.request('a', () => {}),
  'an abort': async ({ AsyncLock }) => {
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    const controller = new AbortController()
    const waiting = lock.lockAsync({ signal: controller.signal })
    controller.abort()
    await waiting.catch(() => {})
  }
}

for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
  for (const isLoadedThere of [false, true]) {
    test(`${entry}${isLoadedThere ? ', loaded there' : ''}: nothing keeps the context of what comes first`, { skip: NO_WEAK_REF }, async t => {
      if (!await isCollected(t, 'pure', () => { require('zlib') })) t.skip('this Node keeps the context in which one of its modules is required first')
      for (const name of Object.keys(firsts)) {
        if (name === 'an abort' && typeof AbortController !== 'function') continue
        assert.strictEqual(await isCollected(t, entry, firsts[name], isLoadedThere), true, name)
      }
    })
  }
}

test('waits that are watched for stalls keep no context of earlier ones', { skip: NO_WEAK_REF }, async t => {
  if (!await isCollected(t, 'force', () => { require('zlib') })) t.skip('this Node keeps the context in which one of its modules is required first')
  const waits = async ({ AsyncLock }) => {
    /* global outside */
    const lock = new AsyncLock(new SharedArrayBuffer(4))
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
  assert.strictEqual(await isCollected(t, 'force', waits, false, { ATOMICS_WAITASYNC_STALL: '1' }), true)
})
