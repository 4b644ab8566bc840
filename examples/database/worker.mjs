import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'
import { AsyncLock } from 'atomics-waitasync'
import { transfer } from './transfer.mjs'

const lock = new AsyncLock(workerData.lock)
const database = new DatabaseSync(workerData.file)

if (workerData.name === 'victim') {
  lock.lock()
  database.exec("BEGIN IMMEDIATE; UPDATE accounts SET balance = balance - 1 WHERE name = 'a'")
  process.exit() // half a transfer
}
for (let n = 0; n < workerData.transfers; n++) lock.executeLockedSync(() => transfer(database, 'a', 'b'))
database.close()
