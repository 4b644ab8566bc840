import { test, expect } from 'vitest'
import { waitAsync, engine } from 'atomics-waitasync/pure'

test('a wait ends with its time', async () => {
  expect(engine).toBe('addon')
  expect(await waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value).toBe('timed-out')
})
