import fs from 'fs'
import { parentPort, workerData } from 'worker_threads'
import { locks } from 'atomics-waitasync'

const { file, versions } = workerData

let computed = 0

/** Returns the version in the file; 0 if there is none yet. */
function cached () {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')).version
  } catch (_) {
    return 0
  }
}

/** Returns the version that is wanted, or a later one. Any number of workers may read; one at a time writes. */
async function load (wanted) {
  const version = await locks.request(file, { mode: 'shared' }, cached)
  if (version >= wanted) return version
  return locks.request(file, async (lock) => {
    // Another worker may have been faster. If one died while it wrote, its file may be half a file.
    if (!lock.ownerDied && cached() >= wanted) return wanted
    await new Promise(resolve => setTimeout(resolve, 5)) // it takes a while
    fs.writeFileSync(file, JSON.stringify({ version: wanted }))
    computed++
    return wanted
  })
}

for (let version = 1; version <= versions; version++) await load(version)
parentPort.postMessage(computed)
