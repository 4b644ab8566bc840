'use strict'

// A worker: takes the next file until there is none left, and adds its words to the shared table.
//
// Where another worker is at the same part of the table it blocks; main, which looks into the table meanwhile, awaits.

const { workerData } = require('worker_threads')
const SharedTable = require('./shared-table')
const { read, WORD } = require('./text')

const { memory, files, worker } = workerData
const table = new SharedTable(memory, worker)
const work = new Int32Array(workerData.work) // the next file · bytes that have been read

// Once in so many words the progress within a file is made known.
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
