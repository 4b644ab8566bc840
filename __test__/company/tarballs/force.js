'use strict'

// The promises of /force: its own queue, and a wait that is the only work keeps the process alive until its time is
// over.

const assert = require('assert')
const api = require('atomics-waitasync/force')

assert.strictEqual(api.engine, 'addon')
assert.strictEqual(Atomics.wait, api.wait)
assert.strictEqual(Atomics.notify, api.notify)
const begin = Date.now()
Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50).value.then(outcome => {
  assert.strictEqual(outcome, 'timed-out')
  assert.ok(Date.now() - begin >= 49)
  console.log('passed')
}).catch(error => {
  console.error(error)
  process.exitCode = 1
})
