'use strict'

// Several workers need the same expensive value, which goes stale after a while. Whichever of them is first computes it, under a lock
// that has a name and nothing else: no memory is shared. The others wait for that one, or go on with the value that they have.
//
//   node examples/named-cache

const fs = require('fs')
const os = require('os')
const path = require('path')
const { Worker } = require('worker_threads')
const { locks } = require('../..')

const WORKERS = 4
const VERSIONS = 5

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'named-cache-'))
  const file = path.join(folder, 'cache.json')
  const results = []
  for (let n = 0; n < WORKERS; n++) {
    const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData: { file, versions: VERSIONS } })
    results.push(new Promise((resolve, reject) => worker.on('error', reject).on('message', resolve)))
  }
  const computed = (await Promise.all(results)).reduce((sum, count) => sum + count, 0)
  console.log(`${WORKERS} workers needed ${VERSIONS} versions; each was computed once: ${computed} times in all`)
  const { held, pending } = await locks.query()
  console.log(`held now: ${held.length}, awaited: ${pending.length}`)
  fs.unlinkSync(file)
  fs.rmdirSync(folder)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
