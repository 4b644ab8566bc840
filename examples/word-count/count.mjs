// Counts the words of files with several workers that share a table. Meanwhile this thread reads the table. It is never
// blocked: a worker blocks for a lock, this thread awaits it.

import { Worker } from 'worker_threads'
import SharedTable from './shared-table.mjs'
import LoopDelay from './loop-delay.mjs'

const MILLISECONDS_BETWEEN_SNAPSHOTS = 25
const SECONDS_WITHOUT_PROGRESS = 60

/**
 * Counts every word once.
 *
 * @param {{ file: string, bytes: number, prose: string }[]} files as `text.mjs` lists them
 * @param {number} workers the number of workers
 * @param {({ words, distinct, done }) => void} onSnapshot `done` is the part of the text that has been read: 0 to 1
 * @returns {Promise<{ words, distinct, seconds, snapshots, awaited, longestSnapshot, longestDelay, counts }>}
 *   `awaited` is the number of locks that main had to wait for; `longestSnapshot` and `longestDelay` are in
 *   milliseconds. Rejects if a worker fails, if a snapshot is not consistent, or if nothing moves for a minute; no
 *   worker is left then.
 */
async function countWords (files, workers, onSnapshot) {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const memory = SharedTable.allocate(bytes, workers)
  const table = new SharedTable(memory)
  const work = new Int32Array(new SharedArrayBuffer(8)) // the next file · bytes that have been read

  const start = process.hrtime()
  const threads = []
  for (let worker = 0; worker < workers; worker++) {
    // Passes the buffer of `work` and not the view: Node 10 would make two views of one buffer.
    const workerData = { memory, work: work.buffer, files, worker }
    threads.push(new Worker(new URL('./worker.mjs', import.meta.url), { workerData }))
  }
  const delay = new LoopDelay()
  const watchdog = new Watchdog(() => table.pulse() + work[0])

  let running = true
  const done = Promise.all(threads.map(end)).then(() => { running = false })
  // A failing worker is reported at once, whatever main awaits at that moment.
  const failure = new Promise((resolve, reject) => {
    done.catch(reject)
    watchdog.barked.catch(reject)
  })
  const orFailure = promise => Promise.race([promise, failure])

  let snapshots = 0
  let awaited = 0
  let longestSnapshot = 0
  const takeSnapshot = async () => {
    const start = process.hrtime()
    const { words, distinct, awaited: some } = await orFailure(table.snapshot())
    longestSnapshot = Math.max(longestSnapshot, millisecondsSince(start))
    snapshots++
    awaited += some
    onSnapshot({ words, distinct, done: Atomics.load(work, 1) / bytes })
    return { words, distinct }
  }

  try {
    while (running) {
      await takeSnapshot()
      await orFailure(Promise.race([done, sleep(MILLISECONDS_BETWEEN_SNAPSHOTS)]))
    }
    const seconds = millisecondsSince(start) / 1000
    const longestDelay = delay.stop()
    const { words, distinct } = await takeSnapshot()
    if (work[1] !== bytes) throw new Error(`the workers have ended, but have read ${work[1]} of ${bytes} bytes`)
    return { words, distinct, seconds, snapshots, awaited, longestSnapshot, longestDelay, counts: table.toMap() }
  } finally {
    delay.stop()
    watchdog.stop()
    await Promise.all(threads.map(thread => thread.terminate()))
  }
}

function end (thread) {
  return new Promise((resolve, reject) => {
    thread.on('error', reject)
    thread.on('exit', code => code === 0 ? resolve(code) : reject(new Error(`a worker has ended with code ${code}`)))
  })
}

function sleep (milliseconds) {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}

function millisecondsSince (start) {
  const [seconds, nanoseconds] = process.hrtime(start)
  return seconds * 1e3 + nanoseconds / 1e6
}

// Rejects `barked` if `pulse()` stays the same for a minute. It counts ticks, not time: a computer may be suspended.
class Watchdog {
  constructor (pulse) {
    let last = pulse()
    let still = 0
    this.barked = new Promise((resolve, reject) => {
      this.timer = setInterval(() => {
        const now = pulse()
        still = now === last ? still + 1 : 0
        last = now
        if (still === SECONDS_WITHOUT_PROGRESS) reject(new Error(`no word has been counted for ${still} seconds`))
      }, 1000)
    })
  }

  stop () {
    clearInterval(this.timer)
  }
}

export default countWords
