import { Worker, isMainThread, workerData } from 'node:worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const lock = isMainThread ? new AsyncLock() : new AsyncLock(workerData)

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: lock })
  const workers = new Map([[worker.threadId, worker]])
  while (!lock.locked) await new Promise(resolve => setTimeout(resolve, 1))

  const token = await lock.lockAsync({ timeout: 50 }).catch(error => {
    workers.get(error.holder).terminate()
    return lock.lockAsync()
  })
  console.log('hanging holder:', token.ownerDied)
  token.unlock() // the state has been repaired
} else {
  for (lock.lock(); ;); // hangs, and holds the lock
}
