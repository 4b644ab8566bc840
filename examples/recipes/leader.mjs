import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { locks, unref } from 'atomics-waitasync'

/** Calls `lead()` once this thread leads, and resigns when that has ended. */
function stand (lead) {
  const election = locks.request('leader', lock => lead(lock.ownerDied))
  unref(election)
  return election
}

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  await new Promise((resolve, reject) => { // it leads
    worker.once('message', resolve).once('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
  })
  const election = stand(afterDeath => `main leads, after a ${afterDeath ? 'crash' : 'resignation'}`)
  worker.terminate()
  console.log('leader:', await election)
} else {
  stand(() => new Promise(() => parentPort.postMessage('leading'))) // leads until it ends
}
