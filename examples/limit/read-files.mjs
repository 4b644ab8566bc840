import fs from 'fs'
import { promisify } from 'util'

const readFile = promisify(fs.readFile)
const NEXT = 2
const OPEN = 3
const MOST = 4
const BYTES = 5

/** Reads the files that no other thread has taken: as many at once as the limit allows. */
export default async function readFiles (memory, limit, files) {
  const words = new Int32Array(memory)
  const reading = []
  for (;;) {
    const n = Atomics.add(words, NEXT, 1)
    if (n >= files.length) break
    reading.push(limit.use(1, async () => {
      raise(words, MOST, Atomics.add(words, OPEN, 1) + 1)
      try {
        const content = await readFile(files[n])
        Atomics.add(words, BYTES, content.length)
      } finally {
        Atomics.sub(words, OPEN, 1)
      }
    }))
    // Leaves some files to the other threads.
    if (reading.length % 8 === 0) await Promise.all(reading)
  }
  await Promise.all(reading)
}

/** Makes a word hold at least `value`. */
function raise (words, index, value) {
  for (let old = Atomics.load(words, index); old < value;) {
    const found = Atomics.compareExchange(words, index, old, value)
    if (found === old) return
    old = found
  }
}
