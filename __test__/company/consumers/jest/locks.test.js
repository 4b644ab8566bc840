'use strict'

/* global test, expect */

const { AsyncLock, Condition, RwLock, Semaphore, waitAsync, notify, unref, ref } = require('atomics-waitasync')

test('a lock is passed on', async () => {
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const next = lock.lockAsync()
  expect(token.unlock()).toBe(true)
  expect((await next).locked).toBe(true)
})

test('its family', async () => {
  const sab = new SharedArrayBuffer(16)
  const condition = new Condition(sab)
  const waits = condition.waitAsync(new AsyncLock(sab, { byteOffset: 4 }).tryLock())
  expect(condition.notify()).toBe(1)
  expect(await waits).toBe(true)
  expect((await new RwLock(sab, { byteOffset: 8 }).lockSharedAsync()).unlock()).toBe(true)
  new Semaphore(sab, { byteOffset: 12 }).release()
  await new Semaphore(sab, { byteOffset: 12 }).acquireAsync()
})

test('ref and unref know the waits of the functions in place', async () => {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { value } = waitAsync(words, 0, 0)
  expect(unref(value)).toBe(ref(value))
  expect(notify(words, 0)).toBe(1)
  expect(await value).toBe('ok')
})
