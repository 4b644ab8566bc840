// Threads of WebAssembly wait and notify by instructions; main awaits them, and the wait keeps the process alive.
//
//   node examples/wasm-threads/index.mjs        (Node 16 or newer)

import fs from 'node:fs'
import { Worker } from 'node:worker_threads'
import { waitAsync, notify } from 'atomics-waitasync/pure'

const THREADS = 3
const LEFT = 0 // the threads that are still at work
const START = 1

const module = await WebAssembly.compile(fs.readFileSync(new URL('./sum.wasm', import.meta.url))) // made of sum.wat
const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
const words = new Int32Array(memory.buffer)
words[LEFT] = THREADS
for (let n = 0; n < THREADS; n++) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { module, memory, from: n * 1e6 + 1, to: (n + 1) * 1e6 }
  })
  worker.unref() // nothing but the wait keeps this process alive
  // An error of a worker ends the process, since nothing listens to it. So does an early end: main would wait for ever.
  worker.on('exit', code => { if (code !== 0) throw new Error(`a worker has ended with code ${code}`) })
}
Atomics.store(words, START, 1)
notify(words, START)

let left
while ((left = Atomics.load(words, LEFT)) > 0) {
  const wait = waitAsync(words, LEFT, left)
  if (wait.async) await wait.value
}
console.log('the sum:', new BigInt64Array(memory.buffer, 8, 1)[0])
