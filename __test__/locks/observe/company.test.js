'use strict'

// In company: code that watches locks (a subscriber, a hook of async_hooks, the maker of a stack's text) uses locks of
// every class meanwhile. Nothing of that changes what an operation gives, nor what is held.

const assert = require('assert')
const { createHook } = require('async_hooks')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { needsChannels, subscribe } = require('../../fixtures/channels')
const { turns } = require('../../fixtures/family-toolbox')
const { TinyController } = require('../../fixtures/lock-toolbox')
const { run } = require('../../fixtures/programs')

const { AsyncLock, Condition, Queue, RwLock, Semaphore, locks, snapshot } = api

/** How many locks a watcher keeps. */
const MOST = 300

/** Makes a watcher that uses locks of every class, and keeps some of them: `kept` has their tokens. */
function newMeddler (kept) {
  const contended = new AsyncLock()
  contended.tryLock()
  const queue = Queue.create({ capacity: 4, messageSize: 16 })
  const semaphore = Semaphore.create({ permits: MOST })
  let isBusy = false
  return function meddle () {
    if (isBusy || kept.length > MOST) return
    isBusy = true
    const lock = new AsyncLock()
    const rw = new RwLock()
    kept.push(lock.tryLock(), rw.tryLockShared(), semaphore.tryHold())
    assert.strictEqual(contended.tryLock(), null)
    assert.throws(() => { new AsyncLock().unlock() }, { code: 'ERR_NOT_LOCKED' })
    rw.tryLockShared().unlock()
    queue.tryPut('a')
    queue.tryTake()
    new Condition().notify()
    locks.request('of a watcher', { ifAvailable: true }, () => {}).catch(() => {})
    lock.lockAsync({ timeout: 0 }).catch(() => {})
    // Native code answers 0: that is no answer of the operation within which this runs.
    assert.strictEqual(contended.waiters, 0)
    isBusy = false
  }
}

const nameOf = (error) => error.name
const failure = (promise) => promise.then(() => 'none', nameOf)

/** What is done in company, by class. Each gives what it has seen. */
const DEEDS = {
  async AsyncLock () {
    const lock = new AsyncLock()
    const seen = []
    const token = lock.tryLock()
    const claims = [lock.lockAsync(), lock.executeLocked(next => next.locked), failure(lock.lockAsync({ timeout: 1 }))]
    const controller = new TinyController()
    const aborted = failure(lock.lockAsync({ signal: controller.signal }))
    controller.abort()
    await turns(3)
    seen.push(await aborted, await claims[2], token.unlock(), token.locked)
    const next = await claims[0]
    seen.push(next.locked, next.abandon(), await claims[1], lock.locked)
    lock.tryLock()
    lock.unlock()
    seen.push(lock.locked, lock.waiters, await lock.executeLocked(async ({ ownerDied }) => ownerDied))
    return seen
  },

  async RwLock () {
    const lock = new RwLock()
    const writer = lock.tryLock()
    const reader = writer.downgrade()
    const other = lock.lockAsync()
    const seen = [writer.locked, reader.locked, lock.readers, reader.unlock()]
    seen.push((await other).abandon(), await lock.executeShared(({ ownerDied }) => ownerDied))
    return seen.concat(await lock.executeLocked(({ ownerDied }) => ownerDied), lock.locked, lock.readers)
  },

  async Semaphore () {
    const semaphore = Semaphore.create({ permits: 2 })
    const held = semaphore.tryHold(2)
    const claims = [semaphore.holdAsync(), semaphore.use(1, token => token.locked)]
    const seen = [held.unlock(), await claims[1], semaphore.available]
    return seen.concat((await claims[0]).unlock(), semaphore.available)
  },

  async Condition () {
    const lock = new AsyncLock()
    const condition = new Condition()
    const waits = [0, 1].map(() => lock.executeLocked(async token => {
      const isNotified = await condition.waitAsync(token)
      return [isNotified, token.locked, lock.waiters]
    }))
    await turns(3)
    const seen = [lock.locked, condition.waiters, condition.notify(1)]
    await turns(3)
    return seen.concat(condition.notify(), ...await Promise.all(waits), lock.locked)
  },

  async names () {
    const seen = []
    const note = async (...given) => {
      seen.push(await locks.request(...given).catch(nameOf))
    }
    await note('n', () => 1)
    await note('n', { mode: 'shared' }, async () => 2)
    await locks.request('n', async () => {
      await note('n', { ifAvailable: true }, lock => lock)
      await note('n', { timeout: 1 }, () => 3)
    })
    await note('n', lock => lock.abandon())
    await note('n', lock => lock.ownerDied)
    let robbed
    const victim = failure(locks.request('n', lock => {
      robbed = lock
      return new Promise(() => {})
    }))
    await turns(2)
    await note('n', { steal: true }, ({ tookOver }) => tookOver)
    seen.push(await victim, robbed.stolen)
    await note('n', { steal: true }, ({ tookOver }) => tookOver)
    return seen
  },

  async Queue () {
    const queue = Queue.create({ capacity: 2, messageSize: 16 })
    const seen = []
    const takes = [queue.takeAsync(), queue.use(value => { seen.push(value) }), queue.takeAsync()]
    const controller = new TinyController()
    const aborted = failure(queue.takeAsync({ signal: controller.signal }))
    for (const value of ['a', 'b', 'c', 'd', 'e', 'f']) queue.putAsync(value).catch(() => {})
    seen.push(await takes[0], await takes[1], await takes[2])
    await aborted.then(name => seen.push(name))
    controller.abort()
    seen.push(queue.tryTake(), queue.tryPut('g'), await queue.takeAsync())
    await turns(3)
    queue.close()
    for await (const value of queue) seen.push(value)
    return seen.concat(await queue.use(() => {}), queue.length, queue.inUse)
  }
}

/** Runs a deed, with or without company; gives what it has seen. */
async function seenBy (t, deed, company) {
  const kept = []
  const meddle = newMeddler(kept)
  const before = snapshot().held.length
  const end = company === undefined ? () => {} : company(t, meddle)
  const seen = await deed()
  end()
  await turns(5)
  assert.strictEqual(company === undefined || kept.length > 0, true, 'nothing was reported')
  assert.strictEqual(snapshot().held.length, before + kept.length)
  for (const token of kept) assert.deepStrictEqual([token.locked, token.unlock(), token.locked], [true, true, false])
  assert.strictEqual(snapshot().held.length, before)
  return seen
}

function subscriber (t, meddle) {
  const stops = ['hold', 'wait', 'owner-died'].map(name => subscribe(t, name, meddle).stop)
  return () => { for (const stop of stops) stop() }
}

/** Hooks of a tracer, beside subscribers without which there is nothing to tell. */
function traced (t, hooks) {
  const stops = ['hold', 'wait', 'owner-died'].map(name => subscribe(t, name).stop)
  const tracer = createHook(hooks).enable()
  return () => {
    tracer.disable()
    for (const stop of stops) stop()
  }
}

const tickHook = (t, meddle) => traced(t, { init: (id, type) => { if (type !== 'PROMISE') meddle() } })
const promiseHook = (t, meddle) => traced(t, { init: (id, type) => { if (type === 'PROMISE') meddle() } })
const resolveHook = (t, meddle) => traced(t, { promiseResolve: meddle })

for (const [name, deed] of Object.entries(DEEDS)) {
  for (const company of [subscriber, tickHook, promiseHook, resolveHook]) {
    test(`${name}: a ${company.name} that uses locks changes nothing`, needsChannels, async t => {
      assert.deepStrictEqual(await seenBy(t, deed, company), await seenBy(t, deed))
    })
  }
}

test('a hook that awaits a lock as a callback form begins: unref applies to each form\'s own wait', async t => {
  const { lines, stderr } = await run(t, ({ api, require, say }) => {
    const { AsyncLock, unref } = api
    const lock = new AsyncLock()
    const other = new AsyncLock()
    lock.tryLock()
    other.tryLock()
    let isOn = true
    const hook = require('async_hooks').createHook({
      init (id, type) {
        if (!isOn || type !== 'PROMISE') return
        isOn = false
        say(unref(other.executeLocked(() => {})))
        isOn = true
      }
    })
    hook.enable()
    const promise = lock.executeLocked(() => {})
    hook.disable()
    say(unref(promise))
  })
  assert.deepStrictEqual([stderr, [...new Set(lines)]], ['', ['true']])
})

for (const abortAt of [1, 2, 3, 4]) {
  test(`a hook that aborts at the ${abortAt}. promise of a call: it rejects, and is in no line`, async () => {
    const lock = new AsyncLock()
    const condition = new Condition()
    const token = lock.tryLock()
    const forms = [
      signal => lock.lockAsync({ signal }),
      signal => lock.executeLocked(() => {}, { signal }),
      signal => locks.request('aborted by a hook', { signal }, () => {}),
      signal => condition.waitAsync(token, { signal })
    ]
    await locks.request('aborted by a hook', async () => {
      for (const form of forms) {
        const controller = new TinyController()
        let promises = 0
        const init = (id, type) => { if (type === 'PROMISE' && ++promises === abortAt) controller.abort() }
        const hook = createHook({ init })
        hook.enable()
        const promise = form(controller.signal)
        hook.disable()
        controller.abort()
        assert.strictEqual(await failure(promise), 'AbortError')
        assert.deepStrictEqual([token.locked, lock.waiters, condition.waiters], [true, 0, 0])
      }
      assert.deepStrictEqual((await locks.query()).pending, [])
    })
    token.unlock()
  })
}

for (const putAt of [1, 2, 3]) {
  test(`a hook that puts at the ${putAt}. resolution within a put: no promise waits that has put`, async () => {
    const queue = Queue.create({ capacity: 2, messageSize: 16 })
    queue.tryPut(0)
    queue.tryPut(0)
    const promises = [queue.putAsync(1)]
    await turns(1)
    // Its notification is on its way when the next one puts for both.
    queue.tryTake()
    queue.tryTake()
    let resolutions = 0
    const hook = createHook({
      promiseResolve () {
        if (++resolutions === putAt) promises.push(queue.putAsync(3))
      }
    })
    hook.enable()
    promises.push(queue.putAsync(2))
    hook.disable()
    assert.strictEqual(queue.waiters, promises.length - 2)
    await turns(3)
    const taken = []
    while (taken.length < promises.length) taken.push(await queue.takeAsync())
    await Promise.all(promises)
    assert.deepStrictEqual([taken, queue.waiters], [[1, 2, 3].slice(0, promises.length), 0])
  })
}

test('a subscriber aborts a granted promise and unlocks its lock: no error', needsChannels, async t => {
  const locks = [new AsyncLock(), new AsyncLock()]
  const tokens = locks.map(lock => lock.tryLock())
  const controller = new TinyController()
  subscribe(t, 'wait', ({ id, outcome }) => {
    if (id !== locks[0].id || outcome !== 'acquired') return
    controller.abort()
    locks[1].unlock()
  })
  const first = locks[0].lockAsync()
  const aborted = failure(locks[1].lockAsync({ signal: controller.signal }))
  // Both are granted together, and settled one after the other.
  for (const token of tokens) token.unlock()
  assert.deepStrictEqual([(await first).unlock(), await aborted], [true, 'AbortError'])
  await turns(3)
  assert.deepStrictEqual(locks.map(({ locked, waiters }) => [locked, waiters]), [[false, 0], [false, 0]])
})

test('a hook that takes a lock at each resource of the package: it keeps them', async t => {
  const { lines, stderr } = await run(t, async ({ api, require, say }) => {
    const { AsyncLock } = api
    const lock = new AsyncLock()
    const kept = []
    const init = (id, type) => {
      if (type === 'atomics-waitasync') kept.push(new AsyncLock().tryLock())
    }
    require('async_hooks').createHook({ init }).enable()
    lock.tryLock()
    const claims = [lock.lockAsync(), lock.lockAsync()]
    lock.unlock()
    for (const claim of claims) {
      const token = await claim
      // The pace is used up: the release asks for a turn of the event loop.
      for (const end = Date.now() + 5; Date.now() < end;);
      say(token.unlock())
    }
    say(kept.every(token => token.locked && token.unlock()))
    say(api.snapshot().held.length)
  })
  assert.deepStrictEqual([stderr, lines], ['', ['true', 'true', 'true', '0']])
})

test('a stall of a blocked thread, and code that makes its stack\'s text by locks: the error is right', async t => {
  const { lines, code } = await run(t, { after: 20 }, async ({ api, say, startWorker }) => {
    const { locks } = api
    await locks.request('held', async () => {
      const { id } = (await locks.query(), api.snapshot().held[0])
      const thread = startWorker(({ api }) => {
        const { AsyncLock, locks } = api
        const other = new AsyncLock()
        other.tryLock()
        Error.prepareStackTrace = (error, frames) => {
          if (other.waiters !== 0 || other.tryLock() !== null) throw new Error('it is held')
          return error + '\\n    at ' + frames.join('\\n    at ')
        }
        try {
          locks.requestSync('held', { timeout: 300 }, () => {})
        } catch ({ name, id, holder }) {
          return [name, id, holder]
        }
      })
      const [name, of, holder] = await thread.done()
      say(`${name} ${of === id} ${holder}`)
    })
  })
  assert.deepStrictEqual([lines, code], [['TimeoutError true 0'], 0])
})
