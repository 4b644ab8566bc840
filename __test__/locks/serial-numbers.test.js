'use strict'

// The serial numbers of holds start again after a billion. Then no number that is in use comes a second time.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const theList = require('../../lib/holding/the-list')

const { AsyncLock, Condition } = api

/** Takes and releases a lock with the last numbers, and with the first ones that come again. */
function startAgain () {
  const list = theList()
  const lock = AsyncLock.create()
  list.serial = list.lastFree - 2
  for (let n = 0; n < 4; n++) lock.tryLock().unlock()
}

const take = () => {
  const lock = AsyncLock.create()
  return { lock, token: lock.tryLock() }
}

function assertReleasesOwn ({ lock, token }) {
  assert.deepStrictEqual([lock.locked, token.locked], [true, true])
  assert.deepStrictEqual([token.unlock(), lock.locked, token.unlock()], [true, false, false])
}

test('each token releases its own lock, of long holds and of new ones', () => {
  for (const count of [1, 3, 300]) {
    const long = Array.from({ length: count }, take)
    // Some leave, so that those that stay are scattered.
    for (const each of long.splice(0, count >> 1)) each.token.unlock()
    for (let round = 0; round < 3; round++) {
      startAgain()
      const others = Array.from({ length: 2 * count }, take)
      // Each other one is released, and taken anew, in the order that was not that of its numbers.
      for (let n = others.length - 1; n >= 0; n -= 2) {
        assertReleasesOwn(others[n])
        others[n] = take()
      }
      long.concat(others.splice(0, count)).reverse().forEach(assertReleasesOwn)
      others.forEach(assertReleasesOwn)
      for (let n = 0; n < long.length; n++) long[n] = take()
    }
    long.forEach(assertReleasesOwn)
  }
})

test('an attempt that fails where they start again', () => {
  const list = theList()
  const taken = take()
  const last = list.serial = list.lastFree
  assert.strictEqual(taken.lock.tryLock(), null)
  assert.notStrictEqual(list.serial, last)
  const next = take()
  assert.strictEqual(taken.lock.tryLock(), null)
  assertReleasesOwn(taken)
  assertReleasesOwn(next)
})

test('the number of a token with which a Condition waits', async () => {
  startAgain()
  const { lock, token } = take()
  const condition = Condition.create()
  const wait = condition.waitAsync(token)
  startAgain()
  const others = Array.from({ length: 100 }, take)
  assert.strictEqual(condition.notify(), 1)
  assert.strictEqual(await wait, true)
  assertReleasesOwn({ lock, token })
  others.forEach(assertReleasesOwn)
})
