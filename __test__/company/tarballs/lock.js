'use strict'

// A lock that main awaits, and for which workers block: no update is lost.

const assert = require('assert')
const { Worker, isMainThread, workerData } = require('worker_threads')
const { AsyncLock } = require('atomics-waitasync')

const ROUNDS = 500
const WORKERS = 2
const sab = isMainThread ? new SharedArrayBuffer(8) : workerData
const lock = new AsyncLock(sab)
const counter = new Int32Array(sab, AsyncLock.byteLength, 1)

/** Increments, neither atomically nor quickly: two at once would be noticed. */
function increment () {
  const before = counter[0]
  for (let i = 0; i < 1000; i++) Atomics.load(counter, 0)
  counter[0] = before + 1
}

async function main () {
  const ends = Array.from({ length: WORKERS }, () => new Promise((resolve, reject) => {
    new Worker(__filename, { workerData: sab }).on('exit', resolve).on('error', reject)
  }))
  for (let i = 0; i < ROUNDS; i++) await lock.executeLocked(increment)
  await Promise.all(ends)
  assert.strictEqual(counter[0], ROUNDS * (WORKERS + 1))
  console.log('passed')
}

if (isMainThread) {
  main().catch(error => {
    console.error(error)
    process.exitCode = 1
  })
} else {
  for (let i = 0; i < ROUNDS; i++) {
    const token = lock.lock()
    increment()
    token.unlock()
  }
}
