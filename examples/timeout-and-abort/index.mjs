// Three ways not to wait for ever: a timeout, an abort, and taking the lock only if it is free. A waiter that gives up
// leaves the queue and does not delay the waiters behind it.
//
//   node examples/timeout-and-abort/index.mjs

import { Worker } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const lock = new AsyncLock()

const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: lock })
await new Promise((resolve, reject) => {
  worker.on('error', reject).on('message', resolve)
  worker.on('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
})
console.log('a worker holds the lock')

console.log(`free right now? ${lock.tryLock() !== null}`)

try {
  await lock.lockAsync({ timeout: 50 })
} catch (error) {
  console.log(`${error.name}: ${error.message}`)
}

const controller = new AbortController()
setTimeout(() => controller.abort(), 50)
try {
  await lock.executeLocked(() => console.log('never comes here'), { signal: controller.signal })
} catch (error) {
  console.log(error.name)
}

// The two waiters above have left the queue, so this one is the first.
const next = lock.lockAsync({ timeout: 10000 })
worker.postMessage('give it up')
const token = await next
console.log('main holds the lock')
token.unlock()
