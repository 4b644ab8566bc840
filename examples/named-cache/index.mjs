// Several workers need the same expensive value, which goes stale. Whichever of them is first computes it, under a lock
// that has a name and nothing else: no memory is shared. The others wait for that one, or go on with the value that
// they have.
//
//   node examples/named-cache/index.mjs

import fs from 'fs'
import os from 'os'
import path from 'path'
import { Worker } from 'worker_threads'
import { locks } from 'atomics-waitasync'

const WORKERS = 4
const VERSIONS = 5

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'named-cache-'))
const file = path.join(folder, 'cache.json')
const results = []
for (let n = 0; n < WORKERS; n++) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: { file, versions: VERSIONS } })
  results.push(new Promise((resolve, reject) => {
    worker.on('error', reject).on('message', resolve)
    // One that ends without an answer.
    worker.on('exit', code => reject(new Error(`a worker has ended with code ${code}`)))
  }))
}
const computed = (await Promise.all(results)).reduce((sum, count) => sum + count, 0)
console.log(`${WORKERS} workers needed ${VERSIONS} versions; each was computed once: ${computed} times in all`)
const { held, pending } = await locks.query()
console.log(`held now: ${held.length}, awaited: ${pending.length}`)
fs.unlinkSync(file)
fs.rmdirSync(folder)
