'use strict'

// Without a library for the platform: functions that need none work, and the others say how to build it.

const assert = require('assert')
const path = require('path')

const home = path.dirname(require.resolve('atomics-waitasync/package.json'))
const target = process.argv[2]

function complains (error) {
  assert.strictEqual(error.code, 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
  for (const part of [
    `(${process.platform} ${process.arch}, Node ${process.version})`,
    `atomics-waitasync.${target}.node`,
    `atomics-waitasync-${target}`,
    '"npm run build"',
    home,
    'cargo'
  ])
    assert.ok(error.message.includes(part), `${part}: ${error.message}`)
  return true
}

if (Atomics.waitAsync === undefined) {
  assert.throws(() => require('atomics-waitasync'), complains)
  // Asking again is answered the same.
  assert.throws(() => require('atomics-waitasync'), complains)
} else {
  const { waitAsync, engine } = require('atomics-waitasync')
  assert.strictEqual(engine, 'host')
  assert.strictEqual(waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 1).value, 'not-equal')
}
assert.throws(() => require('atomics-waitasync/force'), complains)
console.log('passed')
