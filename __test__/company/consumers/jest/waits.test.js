'use strict'

/* global test, expect */

// A second file: Jest loads the package anew for each, the native library but once.

const { waitAsync, notify } = require('atomics-waitasync/pure')

test('a wait is notified', async () => {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { async, value } = waitAsync(words, 0, 0)
  expect(async).toBe(true)
  expect(value).toBeInstanceOf(Promise)
  expect(notify(words, 0)).toBe(1)
  expect(await value).toBe('ok')
})

test('a wait ends with its time', async () => {
  expect(await waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value).toBe('timed-out')
})
