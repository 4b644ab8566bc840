import { isMainThread, Worker, workerData } from 'worker_threads'
import { Semaphore } from 'atomics-waitasync'

async function download(limit: Semaphore, urls: string[]): Promise<string[]> {
  return Promise.all(urls.map(url => limit.use(1, async () => url.toUpperCase())))
}

async function sendAll(limit: Semaphore) {
  const token = await limit.holdAsync(2, { timeout: 500 })
  try {
    console.log(limit.available, limit.permits)
  } finally {
    token.unlock()
  }
}

if (isMainThread) {
  const limit = Semaphore.create({ permits: 3 })
  const ready = new Semaphore()
  new Worker(__filename, { workerData: { limit, ready } })
  ready.acquireAsync().then(() => sendAll(limit))
  download(limit, ['a', 'b']).then(texts => console.log(texts.length))
} else {
  const limit = new Semaphore(workerData.limit)
  const ready = new Semaphore(workerData.ready)
  const length: number = limit.useSync(1, () => 'text'.length)
  ready.release(length)
}
