// A process of the measurement, which contends for a lock: argv has the folder, the engine, whether the named lock
// stands in front, and what to do. It tells its parent what happens.

import { Worker, isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'
import { processLocks, type Engine } from 'atomics-waitasync/processes'
import { available } from './engines.mts'

type Task = [folder: string, name: string, way: 'front' | 'alone', task: 'loop' | 'once' | 'free']
const [folder, name, way, task] = (isMainThread ? process.argv.slice(2) : workerData) as Task
const REQUESTS = 8 // of each thread, at a time

const engine = available(folder)[name]!()
const request = way === 'front' ? throughFront(engine) : alone(engine)

function throughFront (engine: Engine) {
  const locks = processLocks(engine)
  return (callback: () => unknown) => locks.request('figure', callback)
}

/** As one does without it: the requests of a thread go to the engine one after the other. */
function alone (engine: Engine) {
  let last: Promise<unknown> = Promise.resolve()
  return (callback: () => unknown) => {
    last = last.then(async () => {
      const grant = await engine.acquire('figure', 'exclusive', new AbortController().signal, { threadId })
      await callback()
      await grant.release(false)
    })
    const result = last
    last = last.catch(() => {})
    return result
  }
}

let grants = 0

async function loop () {
  // On a busy machine a lease may be lost.
  for (;;) await request(() => { grants++ }).catch(() => {})
}

if (task === 'once') {
  process.send!('asking')
  await request(() => {
    process.send!('granted')
    return new Promise(() => setInterval(() => {}, 1000)) // until it is killed
  })
} else if (task === 'free') {
  const times: number[] = []
  for (let n = 0; n < 100; n++) {
    const began = performance.now()
    await request(() => {})
    times.push(performance.now() - began)
  }
  process.send!({ free: times.toSorted((a, b) => a - b)[50] })
} else if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: process.argv.slice(2) })
  const sum = () => new Promise<number>(resolve => {
    worker.once('message', (others: number) => resolve(grants + others))
    worker.postMessage('how many?')
  })
  process.on('message', async () => process.send!({ grants: await sum() }))
  for (let n = 0; n < REQUESTS; n++) loop()
  worker.once('message', () => process.send!('running'))
} else {
  parentPort!.on('message', () => parentPort!.postMessage(grants))
  for (let n = 0; n < REQUESTS; n++) loop()
  await request(() => parentPort!.postMessage(0))
}
