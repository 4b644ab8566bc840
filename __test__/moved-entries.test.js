'use strict'

// These classes use the package's own queue, whichever functions the global Atomics has.
// subjects: force

// A token knows an index of the robust list, at which its entry may not be any more.

const assert = require('assert')
const { test } = require('./harness')
const { api: { AsyncLock, Condition } } = require('./subject')
const { memory } = require('./fixtures/lock-toolbox')

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
