'use strict'

// util.inspect of each class: its state, its holder, if that is known, and how many wait.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { api } = require('../subject')
const { NAMES, create } = require('../fixtures/every-class')
const { startMember } = require('../fixtures/family-toolbox')
const { newLock } = require('../fixtures/lock-toolbox')

const wait = promise => { api.unref(promise) }

/** By class: what is done with an instance, one after the other, and what is shown then. */
const SHOWN = {
  AsyncLock: [
    [() => {}, 'locked: false, waiters: 0'],
    [lock => lock.tryLock(), "locked: true, holder: 'thread 0', waiters: 0"],
    [lock => wait(lock.lockAsync()), "locked: true, holder: 'thread 0', waiters: 1"]
  ],
  RwLock: [
    [() => {}, 'locked: false, readers: 0, waiters: 0'],
    [lock => lock.tryLock(), 'locked: true, readers: 0, waiters: 0'],
    [lock => wait(lock.lockAsync()), 'locked: true, readers: 0, waiters: 1'],
    [(_, token) => token.downgrade(), 'locked: false, readers: 1, waiters: 1']
  ],
  Semaphore: [
    [semaphore => semaphore.release(2), 'available: 2, waiters: 0'],
    [semaphore => wait(semaphore.acquireAsync(3)), 'available: 2, waiters: 1']
  ],
  'Semaphore with permits': [
    [limit => limit.tryHold(2), 'permits: 3, available: 1, waiters: 0']
  ],
  Condition: [
    [() => {}, 'waiters: 0'],
    [condition => wait(condition.waitAsync(newLock().tryLock())), 'waiters: 1'],
    [condition => condition.notify(), 'waiters: 0']
  ],
  Barrier: [
    [() => {}, 'parties: 2, arrived: 0'],
    [barrier => wait(barrier.waitAsync()), 'parties: 2, arrived: 1'],
    [barrier => wait(barrier.waitAsync()), 'parties: 2, arrived: 0']
  ],
  Latch: [
    [() => {}, 'count: 3, remaining: 3'],
    [latch => latch.countDown(2), 'count: 3, remaining: 1'],
    [latch => latch.countDown(2), 'count: 3, remaining: 0']
  ]
}
const OPTIONS = { 'Semaphore with permits': { permits: 3 }, Barrier: { parties: 2 }, Latch: { count: 3 } }

for (const label of Object.keys(SHOWN)) {
  test(`${label}: util.inspect tells its state and its waiters`, () => {
    const [name] = label.split(' ')
    const thing = new api[name](newLock().sab, OPTIONS[label])
    let result
    for (const [act, shown] of SHOWN[label]) {
      result = act(thing, result) || result
      assert.strictEqual(util.inspect(thing), `${name} { ${shown} }`)
    }
  })
}

test('AsyncLock: util.inspect tells the thread that holds it, if it is known', async t => {
  const lock = newLock()
  const member = await startMember(t, lock.sab)
  await member.on('AsyncLock')('lock')
  assert.strictEqual(util.inspect(lock), `AsyncLock { locked: true, holder: 'thread ${member.threadId}', waiters: 0 }`)
  await member.do('unlock', 'token')
  Atomics.store(lock.i32a, 0, api.AsyncLock.LOCKED)
  assert.strictEqual(util.inspect(lock), "AsyncLock { locked: true, holder: 'unknown', waiters: 0 }")
})

test('util.inspect tells the name of a subclass', () => {
  for (const name of NAMES) {
    class Mine extends api[name] {}
    assert.ok(/mine:\s+Mine \{/.test(util.inspect({ mine: new Mine(create(name)) })), name)
  }
})
