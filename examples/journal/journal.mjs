import fs from 'node:fs'
import { promisify } from 'node:util'
import { AsyncLock } from 'atomics-waitasync'

const appendFile = promisify(fs.appendFile)

/** A file with a record a line, to which every thread may append. */
export class Journal {
  static allocate () {
    return new SharedArrayBuffer(16)
  }

  constructor (memory, file) {
    this.file = file
    this.repairs = new Int32Array(memory, 4, 1)
    this.complete = new Float64Array(memory, 8, 1) // bytes
    this.lock = new AsyncLock(memory, { repair: () => this.repair() })
  }

  /** Removes a record that was written in part. Synchronous, since `append` blocks. */
  repair () {
    fs.truncateSync(this.file, this.complete[0])
    this.repairs[0]++
  }

  /** Blocks until the record is written: for workers. */
  append (record) {
    this.lock.executeLockedSync(() => {
      const line = JSON.stringify(record) + '\n'
      fs.appendFileSync(this.file, line)
      this.complete[0] += Buffer.byteLength(line)
    })
  }

  /** The same without blocking: for every thread. The lock stays held until the callback's promise is settled. */
  appendAsync (record) {
    return this.lock.executeLocked(async () => {
      const line = JSON.stringify(record) + '\n'
      await appendFile(this.file, line)
      this.complete[0] += Buffer.byteLength(line)
    })
  }
}
