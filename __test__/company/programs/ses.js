'use strict'

// SES: all built-ins are frozen after the preload, and before the locks are loaded.

require('ses')
lockdown() // eslint-disable-line no-undef

const { Worker } = require('worker_threads')
const { AsyncLock, locks } = require(process.env.LOCKS)

const shared = new Int32Array(new SharedArrayBuffer(8))
const lock = new AsyncLock(shared.buffer, { byteOffset: 4 })

async function main () {
  const { value } = Atomics.waitAsync(shared, 0, 0)
  const token = await lock.lockAsync()
  const late = await lock.lockAsync({ timeout: 10 }).catch(({ name }) => name)
  token.unlock()
  const worker = new Worker(`
    const { workerData } = require('worker_threads')
    const { AsyncLock } = require(process.env.LOCKS)
    const token = new AsyncLock(workerData.buffer, { byteOffset: 4 }).lock()
    Atomics.store(workerData, 0, 1)
    Atomics.notify(workerData, 0)
    token.unlock()`, { eval: true, workerData: shared })
  await new Promise((resolve, reject) => { worker.on('exit', resolve); worker.on('error', reject) })
  console.log(late, await lock.executeLocked(() => 42), await locks.request('name', () => 'named'), await value)
}

main()
