'use strict'

// subjects: force
// The engine compiles the methods of a lock when they have been called often, and then they do what they did before. (Node 26.10
// miscompiles a variable of a module that an inlined function assigns: one call in many thousands took a lock for another object.)

const assert = require('assert')
const path = require('path')
const { Worker, isMainThread, workerData } = require('worker_threads')

const LOCKS = 12
const CALLS = 20000

if (!isMainThread) {
  const { AsyncLock } = require(workerData.package)
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  for (let calls = 0; calls < CALLS; calls++) lock.lock().unlock()
  const run = async () => {
    for (let calls = 0; calls < CALLS; calls++) await lock.executeLocked(() => {})
  }
  run().catch(error => { setImmediate(() => { throw error }) })
} else {
  const { test } = require('./harness')

  test('a lock that is used often stays a lock', async () => {
    const ends = Array.from({ length: LOCKS }, () => new Promise((resolve, reject) => {
      const worker = new Worker(__filename, { workerData: { package: path.join(__dirname, '..', 'force') } })
      worker.on('error', reject).on('exit', resolve)
    }))
    assert.deepStrictEqual(await Promise.all(ends), ends.map(() => 0))
  })
}
