// The same count in one thread with one Map. The shared table is checked against it, so it also splits the text in
// another way: everything that is not a word is a separator.
//
//   node single-threaded.mjs JOB.json RESULT.json

import fs from 'fs'
import { fileURLToPath } from 'url'
import { read } from './text.mjs'

const SEPARATOR = /(?:[^\p{L}\p{M}\p{N}'’]|['’](?![\p{L}\p{M}\p{N}])|(?<![\p{L}\p{M}\p{N}])['’])+/u

function count (files) {
  const counts = new Map()
  let words = 0
  for (const file of files) {
    for (const word of read(file).split(SEPARATOR)) {
      if (word === '') continue
      counts.set(word, (counts.get(word) || 0) + 1)
      words++
    }
  }
  return { words, counts }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [job, result] = process.argv.slice(2)
  const { files } = JSON.parse(fs.readFileSync(job, 'utf8'))
  const start = process.hrtime()
  const { words, counts } = count(files)
  const [seconds, nanoseconds] = process.hrtime(start)
  fs.writeFileSync(result, JSON.stringify({ words, seconds: seconds + nanoseconds / 1e9, counts: Array.from(counts) }))
}

export default count
