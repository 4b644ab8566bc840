import { test, expect } from 'vitest'
import { engine } from 'atomics-waitasync/force'

test('the global functions are the package\'s', async () => {
  expect(engine).toBe('addon')
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { value } = Atomics.waitAsync(words, 0, 0)
  expect(value).toBeInstanceOf(Promise)
  expect(Atomics.notify(words, 0)).toBe(1)
  expect(await value).toBe('ok')
  expect(() => Atomics.notify(1)).toThrow(TypeError)
})
