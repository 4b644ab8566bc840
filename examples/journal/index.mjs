// Main and three workers append records to one file. One worker dies in the middle of a record: the next writer repairs
// the file.
//
//   node examples/journal/index.mjs

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { Journal } from './journal.mjs'

const RECORDS = 100

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'journal-'))
const file = path.join(folder, 'journal')
fs.writeFileSync(file, '')
const memory = Journal.allocate()
const journal = new Journal(memory, file)

const ends = ['first', 'second', 'victim'].map(name => new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { memory, file, name, records: RECORDS }
  })
  worker.on('error', reject)
  worker.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
}))
for (let n = 0; n < RECORDS; n++) await journal.appendAsync({ from: 'main', n })
await Promise.all(ends)
await journal.appendAsync({ from: 'main', n: RECORDS })

const lines = fs.readFileSync(file, 'utf8').trim().split('\n')
const names = lines.map(line => JSON.parse(line).from) // throws if a record is not whole
const ofMain = names.filter(name => name === 'main').length
console.log(`${names.length} records, ${ofMain} of main; repaired: ${journal.repairs[0]}`)
fs.unlinkSync(file)
fs.rmdirSync(folder)
