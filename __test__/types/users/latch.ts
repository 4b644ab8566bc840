import { isMainThread, Worker, workerData } from 'worker_threads'
import { Latch } from 'atomics-waitasync'

async function start(count: number): Promise<Worker[]> {
  const ready = Latch.create({ count, name: 'workers' })
  const workers = Array.from({ length: count }, () => new Worker(__filename, { workerData: { ready } }))
  await ready.waitAsync({ timeout: 5000 })
  console.log(ready.remaining)
  return workers
}

if (isMainThread) {
  start(4).then(workers => Promise.all(workers.map(worker => worker.terminate())))
} else {
  const ready = new Latch(workerData.ready)
  ready.countDown()
  ready.wait()
}
