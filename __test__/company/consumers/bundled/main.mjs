// An application to be bundled: the main thread and a worker, each a bundle of its own, share a lock.

import assert from 'assert'
import { Worker } from 'worker_threads'
import { AsyncLock, waitAsync } from 'atomics-waitasync'
import { notify } from 'atomics-waitasync/pure'

const ROUNDS = 300
const sab = new SharedArrayBuffer(8)
const lock = new AsyncLock(sab)
const counter = new Int32Array(sab, AsyncLock.byteLength, 1)

const worker = new Worker(process.argv[2], { workerData: { sab, rounds: ROUNDS } })
const ended = new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject))

async function main () {
  for (let i = 0; i < ROUNDS; i++) await lock.executeLocked(() => { counter[0]++ })
  await ended
  assert.strictEqual(counter[0], 2 * ROUNDS)
  const { value } = waitAsync(new Int32Array(sab), 0, 0, 20000)
  assert.strictEqual(notify(new Int32Array(sab), 0), 1)
  assert.strictEqual(await value, 'ok')
  console.log('passed')
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
