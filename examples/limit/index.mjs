// Several threads read files, but at most three at a time. A thread that holds all permits dies first; its permits come
// back for the others.
//
//   node examples/limit/index.mjs

import fs from 'fs'
import path from 'path'
import { fileURLToPath } from 'url'
import { Worker } from 'worker_threads'
import { Latch, Semaphore } from 'atomics-waitasync'
import readFiles from './read-files.mjs'

const LIMIT = 3
const THREADS = 3

const folder = fileURLToPath(new URL('../../docs', import.meta.url))
const files = fs.readdirSync(folder).filter(name => name.endsWith('.md')).map(name => path.join(folder, name))
// limit · latch · the next file · open files · the most that were ever open · bytes
const memory = new SharedArrayBuffer(4 * 6)
const words = new Int32Array(memory)
const limit = new Semaphore(memory, { permits: LIMIT })

// It takes all permits and dies. If they did not come back, no thread could ever open a file.
const victim = new Worker(new URL('./victim.mjs', import.meta.url), { workerData: { memory, limit } })
await new Latch(memory, { count: 1, byteOffset: 4 }).waitAsync({ timeout: 10000 }) // rejects if it could not start
await victim.terminate()

const done = [readFiles(memory, limit, files)]
for (let n = 1; n < THREADS; n++) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { memory, limit, files } })
  done.push(new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', code => code === 0 ? resolve() : reject(new Error(`a worker has ended with code ${code}`)))
  }))
}
await Promise.all(done)

const [, , , open, most, bytes] = words
const expected = files.reduce((sum, file) => sum + fs.statSync(file).size, 0)
if (bytes !== expected) throw new Error(`${bytes} bytes have been read, not ${expected}`)
if (most > LIMIT || open !== 0 || limit.available !== LIMIT) throw new Error(`${most} files were open at a time`)
console.log(`${THREADS} threads have read ${files.length} files of ${bytes} bytes, at most ${most} at a time`)
