'use strict'

// Buffers that are longer than the longest typed array: the package needs no view over all of one. The system gives the
// memory of what is touched only.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { NAMES, bytesOf, optionsOf } = require('../fixtures/every-class')
const { HAS_BIGINT64, MAJOR } = require('../fixtures/queue-toolbox')

const GIB = 2 ** 30

/** The Atomics of Node 10 take the offset of a typed array modulo this. */
const WRAPS = MAJOR < 12 ? 4 * GIB : Infinity

function allocate (t, bytes) {
  try {
    return new SharedArrayBuffer(bytes)
  } catch (error) {
    return t.skip(`no buffer of ${bytes} bytes here: ${error.message}`)
  }
}

for (const gib of [1, 2, 4, 6, 8]) {
  const bytes = gib * GIB + 64
  const offsets = [8, bytes - 64].filter(at => at < WRAPS)

  test(`${gib} GiB: wait, notify and waitAsync`, async t => {
    const buffer = allocate(t, bytes)
    for (const at of offsets) {
      const arrays = [new Int32Array(buffer, at, 4)]
      if (HAS_BIGINT64) arrays.push(new BigInt64Array(buffer, at, 4))
      for (const array of arrays) {
        const zero = array[0]
        const { async, value } = Atomics.waitAsync(array, 1, zero)
        assert.strictEqual(async, true)
        assert.strictEqual(api.waiterCount(array, 1), 1)
        assert.strictEqual(api.waiterCount(array, 0), 0)
        assert.strictEqual(Atomics.wait(array, 1, zero, 1), 'timed-out')
        assert.strictEqual(Atomics.notify(array, 1), 1)
        assert.strictEqual(await value, 'ok')
      }
    }
  })

  test(`${gib} GiB: every class, at either end`, async t => {
    const buffer = allocate(t, bytes)
    for (const byteOffset of offsets) {
      const words = new Int32Array(buffer, byteOffset - 4, 3)
      for (const name of NAMES) {
        const at = Math.min(byteOffset, bytes - bytesOf(name))
        const thing = new api[name](buffer, Object.assign({ byteOffset: at }, optionsOf(name)))
        if (name === 'Queue') assert.strictEqual(thing.length, 0)
      }
      const lock = new api.AsyncLock(buffer, { byteOffset })
      const token = lock.tryLock()
      assert.deepStrictEqual(Array.from(words), [0, 1, 0])
      const next = lock.lockAsync()
      token.unlock()
      ;(await next).unlock()
      assert.deepStrictEqual(Array.from(words), [0, 0, 0])
    }
    assert.throws(() => new api.AsyncLock(buffer, { byteOffset: bytes }), RangeError)
  })
}

const skip = WRAPS === Infinity && 'the Atomics of this Node reach every word'
test('where the host\'s Atomics would reach another word, constructors throw', { skip }, t => {
  const buffer = allocate(t, 5 * GIB)
  for (const byteOffset of [4 * GIB, 5 * GIB - 4]) {
    const message = /^AsyncLock: byteOffset must be less than 4294967296 on Node 10, /
    assert.throws(() => new api.AsyncLock(buffer, { byteOffset }), { name: 'RangeError', message })
  }
  // Not its first word, but others of it.
  const placed = Object.assign({ byteOffset: 4 * GIB - 8 }, optionsOf('Queue'))
  assert.throws(() => new api.Queue(buffer, placed), /^RangeError: Queue: byteOffset must be less than 429496/)
})
