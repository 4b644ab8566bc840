import { test, expect } from 'vitest'
import { AsyncLock, waitAsync, notify } from 'atomics-waitasync/force'

test('two tasks of this thread', async () => {
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  const order = []
  await Promise.all([1, 2, 3].map(n => lock.executeLocked(async () => {
    order.push(n)
    await new Promise(resolve => setImmediate(resolve))
    order.push(n)
  })))
  expect(order).toEqual([1, 1, 2, 2, 3, 3])
})

test('a wait is notified', async () => {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { value } = waitAsync(words, 0, 0)
  expect(notify(words, 0)).toBe(1)
  expect(await value).toBe('ok')
})
