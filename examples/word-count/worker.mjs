// A worker: it adds the words of each next file to the shared table.
//
// It blocks while another thread holds the lock of the same stripe; main, which also reads the table, awaits locks.

import { workerData } from 'worker_threads'
import SharedTable from './shared-table.mjs'
import { read, WORD } from './text.mjs'

const { memory, files, worker } = workerData
const table = new SharedTable(memory, worker)
const work = new Int32Array(workerData.work) // the next file · bytes read

// Reports the progress within a file after so many words.
const STRIDE = 1024

for (;;) {
  const next = Atomics.add(work, 0, 1)
  if (next >= files.length) break
  countWordsOf(files[next])
}

function countWordsOf (file) {
  const prose = read(file)
  let words = 0
  let reported = 0
  const report = bytes => {
    Atomics.add(work, 1, bytes - reported)
    reported = bytes
  }

  WORD.lastIndex = 0
  for (let match = WORD.exec(prose); match !== null; match = WORD.exec(prose)) {
    table.add(match[0])
    if (++words % STRIDE === 0) report(Math.floor(file.bytes * WORD.lastIndex / prose.length))
  }
  report(file.bytes)
}
