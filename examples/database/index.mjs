// Main and three workers write to one SQLite database, in turns: workers block for the lock, main awaits it. One worker
// dies in a transaction.
//
//   node examples/database/index.mjs        (Node 22.13 or newer: it has node:sqlite)

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { AsyncLock } from 'atomics-waitasync'
import { transfer } from './transfer.mjs'

const TRANSFERS = 50

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'accounts-'))
const file = path.join(folder, 'accounts.db')
const database = new DatabaseSync(file)
database.exec('CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)')
database.exec("INSERT INTO accounts VALUES ('a', 1000), ('b', 1000)")

const lock = new AsyncLock()
const ends = ['first', 'second', 'victim'].map(name => new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { lock, file, name, transfers: TRANSFERS }
  })
  worker.on('error', reject)
  worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
}))
for (let n = 0; n < TRANSFERS; n++) await lock.executeLocked(() => transfer(database, 'a', 'b'))
await Promise.all(ends)

const rows = database.prepare('SELECT name, balance FROM accounts ORDER BY name').all()
console.log(rows.map(({ name, balance }) => `${name}: ${balance}`).join(', '))
database.close()
fs.rmSync(folder, { recursive: true })
