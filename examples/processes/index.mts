// Three processes of two threads each increment a number in a file. One of them is killed with the lock.
//
//   node examples/processes/index.mts
//
// Node 22.18 or newer runs TypeScript; in a checkout after `npm install --no-save ../..` in its folder.

import cluster from 'node:cluster'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Worker, isMainThread, workerData } from 'node:worker_threads'
import { processLocks } from 'atomics-waitasync/processes'

const ROUNDS = 50 // of each thread
const isPrimary = cluster.isPrimary && isMainThread // to cluster, any Worker is a primary process
const folder: string = isPrimary ? fs.mkdtempSync(path.join(os.tmpdir(), 'cluster-')) : workerData ?? process.env.FOLDER
const file = path.join(folder, 'number')
const locks = processLocks(path.join(folder, 'locks'))

async function increment () {
  await locks.request('number', { timeout: 60_000 }, async ({ ownerDied }) => {
    if (ownerDied) console.log('a process died with the lock') // → a process died with the lock
    const number = Number(fs.readFileSync(file, 'utf8'))
    await new Promise(setImmediate)
    fs.writeFileSync(file, String(number + 1))
  })
}

async function count () {
  await Promise.all(Array.from({ length: ROUNDS }, increment))
  await locks.close()
}

/** Starts a process of the cluster. Resolves once it has ended well; the victim, once it is killed. */
function start (role: string) {
  const child = cluster.fork({ FOLDER: folder, ROLE: role })
  child.on('message', () => child.process.kill('SIGKILL'))
  return new Promise<void>((resolve, reject) => child.on('exit', (code, signal) => {
    if (code === 0 || (role === 'victim' && signal === 'SIGKILL')) resolve()
    else reject(new Error(`process ${role} has ended with ${signal ?? `code ${code}`}`))
  }))
}

if (isPrimary) {
  fs.writeFileSync(file, '0')
  await start('victim')
  await Promise.all(['one', 'two', 'three'].map(start))
  console.log('counted to', fs.readFileSync(file, 'utf8')) // → counted to 300
  fs.rmSync(folder, { recursive: true })
} else if (process.env.ROLE === 'victim') {
  locks.request('number', () => new Promise(() => process.send!('I have the lock')))
} else {
  if (isMainThread) {
    new Worker(new URL(import.meta.url), { workerData: folder }).on('exit', code => {
      process.exitCode = code
      cluster.worker!.disconnect()
    })
  }
  await count()
}
