import * as path from 'path'
import { Worker } from 'worker_threads'

const n: number = 2
const text = 'require("worker_threads").parentPort.postMessage(' + n + ')'
new Worker(text, { eval: true }).on('message', (message: number) => {
  console.log('text', message)
  const worker = new Worker(path.join(__dirname, 'typescript-worker.ts'), { workerData: n })
  worker.on('message', (message: number) => { console.log('file', message) })
})
