import { Worker } from 'node:worker_threads'
import test from 'ava'

test('a worker answers', async t => {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true })
  t.is(await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)), 1)
})
