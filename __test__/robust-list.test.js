'use strict'

// These classes use the package's own queue, whichever functions the global Atomics has.
// subjects: force

// The robust list: a token knows an index of it, at which its entry may not be any more; and other threads see what a thread tries to take.

const assert = require('assert')
const { test } = require('./harness')
const { api: { AsyncLock, Condition } } = require('./subject')
const { memory } = require('./fixtures/lock-toolbox')
const { startWorker } = require('./fixtures/queue-toolbox')

for (const way of ['the time is over', 'it is notified']) {
  test(`a token whose entry had moved is live again after a wait, however many others have moved meanwhile: ${way}`, async () => {
    const sab = memory(32)
    const [first, lock, one, other] = [0, 4, 8, 12].map(byteOffset => new AsyncLock(sab, { byteOffset }))
    const condition = new Condition(sab, { byteOffset: 16 })
    const before = first.tryLock()
    const token = lock.tryLock()
    // The last entry takes the place of the one that goes.
    before.unlock()
    const wait = condition.waitAsync(token, { timeout: way === 'it is notified' ? Infinity : 5 })
    await undefined
    for (let n = 0; n < 100; n++) {
      const [goes, moves] = [one, other].map(lock => lock.tryLock())
      goes.unlock()
      moves.unlock()
    }
    if (way === 'it is notified') condition.notify()
    assert.strictEqual(await wait, way === 'it is notified')
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(lock.locked, false)
  })
}

test('a thread that has tried in vain to take a lock is not taken for its holder', async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  // By code that does not know the class, so that no holder is known.
  Atomics.store(lock.i32a, 0, AsyncLock.LOCKED)
  const worker = startWorker(t, async ({ api, data, post, sleep }) => {
    const token = new api.AsyncLock(data).tryLock()
    post(token)
    await sleep(60000)
  }, sab)
  assert.strictEqual(await worker.next(), null)
  lock.unlock()
  assert.strictEqual(lock.locked, false)
})
