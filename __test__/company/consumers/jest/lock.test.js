'use strict'

/* global test, expect */

const { Worker } = require('worker_threads')
const { AsyncLock } = require('atomics-waitasync')

const ROUNDS = 200
const CODE = `
  const { workerData } = require('worker_threads')
  const { AsyncLock } = require(workerData.file)
  const lock = new AsyncLock(workerData.sab)
  const counter = new Int32Array(workerData.sab, 4, 1)
  for (let i = 0; i < ${ROUNDS}; i++) {
    const token = lock.lock()
    counter[0]++
    token.unlock()
  }`

test('a lock between this thread and a worker', async () => {
  const sab = new SharedArrayBuffer(8)
  const counter = new Int32Array(sab, AsyncLock.byteLength, 1)
  const lock = new AsyncLock(sab)
  const worker = new Worker(CODE, { eval: true, workerData: { sab, file: require.resolve('atomics-waitasync') } })
  const ended = new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject))
  for (let i = 0; i < ROUNDS; i++) await lock.executeLocked(() => { counter[0]++ })
  await ended
  expect(counter[0]).toBe(2 * ROUNDS)
})

test('giving up', async () => {
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  await expect(lock.lockAsync({ timeout: 10 })).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(token.unlock()).toBe(true)
})
