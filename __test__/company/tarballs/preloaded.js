'use strict'

// Uses only the global Atomics, in this thread and another: the package comes by a -r flag.

const assert = require('assert')
const { Worker, isMainThread, workerData } = require('worker_threads')

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { value } = Atomics.waitAsync(words, 0, 0, 20000)
  new Worker(__filename, { workerData: words }).on('error', error => { throw error })
  value.then(outcome => {
    assert.strictEqual(outcome, 'ok')
    console.log('passed')
  }).catch(error => {
    console.error(error)
    process.exitCode = 1
  })
} else {
  assert.strictEqual(typeof Atomics.waitAsync, 'function')
  Atomics.notify(workerData, 0)
}
