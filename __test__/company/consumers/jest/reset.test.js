'use strict'

/* global test, expect, jest */

/** Uses the lock and the queue of two instances of the package. */
async function useBoth (one, other) {
  const lock = new one.AsyncLock(new SharedArrayBuffer(4))
  const twin = new other.AsyncLock(lock)
  expect(await lock.executeLocked(() => twin.tryLock())).toBe(null)
  const token = twin.tryLock()
  expect(token).toBeInstanceOf(other.UnlockToken)
  await expect(lock.lockAsync({ timeout: 5 })).rejects.toMatchObject({ code: 'ERR_TIMEOUT' })
  expect(token.unlock()).toBe(true)
  expect(lock.locked).toBe(false)
  const queue = one.Queue.create({ capacity: 2, messageSize: 32 })
  const taken = queue.takeAsync()
  await new other.Queue(queue.buffer, { capacity: 2, messageSize: 32 }).putAsync('message')
  expect(await taken).toBe('message')
}

test('modules are reset before the first use', async () => {
  const api = require('atomics-waitasync')
  jest.resetModules()
  await useBoth(api, api)
})

test('modules are reset after the first use, with fake timers', async () => {
  jest.useFakeTimers()
  try {
    const api = require('atomics-waitasync/pure')
    await useBoth(api, api)
    jest.resetModules()
    await useBoth(require('atomics-waitasync/pure'), api)
    await useBoth(api, require('atomics-waitasync'))
  } finally {
    jest.useRealTimers()
  }
})
