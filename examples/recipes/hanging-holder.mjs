import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { AsyncLock } from 'atomics-waitasync'

const lock = isMainThread ? new AsyncLock() : new AsyncLock(workerData)

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: lock })
  const workers = new Map([[worker.threadId, worker]])
  await new Promise((resolve, reject) => { // it has the lock
    worker.once('message', resolve).once('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
  })

  const token = await lock.lockAsync({ timeout: 50 }).catch(error => {
    const holder = workers.get(error.holder)
    if (holder === undefined) throw error // not a timeout, or main has the lock
    holder.terminate()
    return lock.lockAsync({ timeout: 5000 })
  })
  console.log('hanging holder:', token.ownerDied)
  token.unlock() // the state has been repaired
} else {
  lock.lock()
  parentPort.postMessage('locked')
  for (;;); // hangs, and holds the lock
}
