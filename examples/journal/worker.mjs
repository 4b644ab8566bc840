import fs from 'node:fs'
import { workerData } from 'node:worker_threads'
import { Journal } from './journal.mjs'

const { memory, file, name, records } = workerData
const journal = new Journal(memory, file)

if (name === 'victim') {
  journal.lock.lock()
  fs.appendFileSync(file, '{"from":"vic') // half a record
  process.exit(0)
}
for (let n = 0; n < records; n++) journal.append({ from: name, n })
