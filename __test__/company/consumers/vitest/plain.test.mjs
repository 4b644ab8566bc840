import { Worker } from 'worker_threads'
import { test, expect } from 'vitest'

// Does not know the package. Another file may have installed it in the thread, and with that in all Workers from then
// on.

const CODE = `
  const { parentPort, workerData: words } = require('worker_threads')
  parentPort.postMessage(Atomics.wait(words, 0, 0, 20000))
  Atomics.store(words, 1, 1)
  while (Atomics.notify(words, 1) === 0);`

test('this file and a Worker notify each other', async () => {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(CODE, { eval: true, workerData: words })
  const heard = new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
  const ended = new Promise(resolve => worker.on('exit', resolve))
  const wait = Atomics.waitAsync(words, 1, 0).value
  while (Atomics.notify(words, 0) === 0) await new Promise(resolve => setTimeout(resolve, 5))
  expect(await heard).toBe('ok')
  expect(await wait).toBe('ok')
  expect(await ended).toBe(0)
})
