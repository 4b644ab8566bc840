'use strict'
// nodes: >=16 (older ones lack what the engines need)

// When requests of process locks give up, over an engine that does as it is told.

const assert = require('assert')
const { test } = require('../harness')
const { FakeEngine, never } = require('../fixtures/fake-engine')
const { TinyController } = require('../fixtures/lock-toolbox')
const { locks: named } = require('../..')
const { processLocks } = require('../../processes')

test('no timeout comes early, also those between two milliseconds', async () => {
  const engine = new FakeEngine()
  engine.isOpen = never()
  const locks = processLocks(engine)
  const timeouts = Array.from({ length: 90 }, (_, n) => n === 0 ? Number.MIN_VALUE : n / 10)
  for (let n = 0; n < 5; n++) {
    await Promise.all(timeouts.map(async timeout => {
      const began = performance.now()
      const error = await locks.request('a', { timeout }, () => {}).catch(each => each)
      const took = performance.now() - began
      assert.strictEqual(error.code, 'ERR_TIMEOUT')
      assert.ok(took >= timeout, `a timeout of ${timeout} ms after ${took}`)
    }))
  }
})

test('an attempt that is aborted rejects with the reason, whatever its engine says of that', async () => {
  const engine = new FakeEngine()
  engine.attempt = (name, mode, signal) => new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('of the engine')))
  })
  const { abort, signal } = new TinyController()
  setImmediate(abort)
  const locks = processLocks(engine)
  const error = await locks.request('a', { ifAvailable: true, signal }, () => {}).catch(thrown => thrown)
  assert.strictEqual(error.name, 'AbortError')
})

test('a callback of a request with the shortest timeout has never begun when that is over', async () => {
  const engine = new FakeEngine()
  const gate = engine.pause()
  const locks = processLocks(engine)
  const begun = []
  const options = { timeout: Number.MIN_VALUE }
  const late = await locks.request('a', options, () => { begun.push('late') }).catch(({ code }) => code)
  assert.strictEqual(late, 'ERR_TIMEOUT')
  gate.resolve()
  await locks.request('a', () => { begun.push('next') })
  assert.deepStrictEqual(begun, ['next'])
})

test('a signal that keeps its listeners: an abort after the callback has begun changes nothing', async () => {
  const engine = new FakeEngine()
  const locks = processLocks(engine)
  const { abort, signal, listeners } = new TinyController({ removes: false })
  const result = await locks.request('a', { signal }, async () => {
    assert.strictEqual(listeners.size, 1)
    abort()
    await new Promise(resolve => setImmediate(resolve))
    return 'done'
  })
  assert.strictEqual(result, 'done')
})

/** How a request fails; a function gives the promise. */
const failures = {
  'its callback fails': locks => locks.request('a', () => { throw new Error('on purpose') }),
  'its time is over': (locks, engine) => {
    engine.isOpen = never()
    return locks.request('a', { timeout: 3 }, () => {})
  },
  'it is aborted': (locks, engine) => {
    engine.isOpen = never()
    const { abort, signal } = new TinyController()
    setImmediate(abort)
    return locks.request('a', { signal }, () => {})
  }
}

for (const [how, request] of Object.entries(failures)) {
  test(`once a promise rejects because ${how}, the thread does not have the lock any more`, async () => {
    const engine = new FakeEngine()
    const locks = processLocks(engine)
    assert.strictEqual(await request(locks, engine).then(() => 'fulfilled', () => 'rejected'), 'rejected')
    engine.isOpen = Promise.resolve()
    assert.strictEqual(await locks.request('a', { ifAvailable: true }, lock => lock !== null), true)
  })
}

test('close() ends after it has rejected what waits', async () => {
  const engine = new FakeEngine()
  engine.isOpen = never()
  const locks = processLocks(engine)
  const order = []
  locks.request('a', () => {}).catch(({ name }) => order.push(name))
  await locks.close()
  assert.deepStrictEqual(order, ['AbortError'])
})

test('a signal that throws: its request rejects and never begins, or runs; the lock is free afterwards', async () => {
  const boom = () => { throw new Error('boom') }
  const ignore = () => {}
  for (const [addEventListener, removeEventListener, expected] of [[boom, ignore, 'boom'], [ignore, boom, 'runs']]) {
    const signal = { aborted: false, addEventListener, removeEventListener }
    const locks = processLocks(new FakeEngine())
    const holder = await locks.hold('a')
    const begun = []
    const asked = [
      locks.request('a', { signal }, () => {
        begun.push('a')
        return 'runs'
      }),
      locks.hold('a', { signal }).then(lock => lock.unlock()).then(() => 'runs'),
      locks.requestAll(['a', 'b'], { signal }, () => 'runs')
    ].map(promise => promise.catch(({ message }) => message))
    await holder.unlock()
    assert.deepStrictEqual(await Promise.all(asked), [expected, expected, expected])
    assert.deepStrictEqual(begun, expected === 'runs' ? ['a'] : [])
    assert.strictEqual(await locks.request('a', { timeout: 5000 }, () => 'free'), 'free')
    await locks.close()
  }
})

test('a theft of the name in front takes no lock of the engine away', async () => {
  for (const options of [{ ifAvailable: true }, {}]) {
    const engine = new FakeEngine()
    const gate = engine.pause()
    const locks = processLocks(engine)
    const asked = locks.request('a', options, lock => lock.token)
    await named.request('fake: a', { steal: true }, () => {})
    gate.resolve()
    assert.deepStrictEqual([await asked, engine.released], [1, [false]])
    assert.strictEqual(await locks.request('a', options, lock => lock.token), 2)
    await locks.close()
  }
})
