'use strict'
// flags: --expose-gc

// A claim that has been cancelled leaves nothing in its thread's tables.

const assert = require('assert')
const { test } = require('../harness')
const { TinyController, newLock, rejection } = require('../fixtures/lock-toolbox')

test('a claim that has been cancelled leaves nothing', { timeout: 60000 }, async () => {
  const lock = newLock()
  const token = lock.tryLock()
  const cancelSome = async (count) => {
    for (let n = 0; n < count; n += 100) {
      const { abort, signal } = new TinyController({ reason: 'cancelled' })
      const claims = Array.from({ length: 100 }, () => rejection(lock.lockAsync({ signal })))
      abort()
      await Promise.all(claims)
    }
    global.gc()
    return process.memoryUsage().heapUsed
  }
  const before = await cancelSome(10000)
  const grown = await cancelSome(40000) - before
  assert(grown < 4e6, `${grown} bytes are left`)
  token.unlock()
})
