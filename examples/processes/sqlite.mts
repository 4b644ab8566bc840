import fs from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Engine, Grant, Mode } from './process-locks.mts'
import { inFolder } from './tools.mts'

/**
 * Locks of the processes of one machine, without a server: each name is a small database, and the lock is that of its
 * file.
 *
 * The folder is for locks alone, on a local disk. A process that has locks must not open its files in another way: on
 * POSIX systems all locks of a process on a file end when it closes any descriptor of that file.
 */
export const sqlite = (folder: string): Engine => inFolder('sqlite', folder, attempt)

/** Takes the lock unless another process has it. */
function attempt (file: string, mode: Mode): Grant | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    const { token, held } = mode === 'exclusive' ? takeExclusive(database) : takeShared(database)
    return grantOf(database, file, mode, token, held)
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw error
  }
}

/** Writes down the next token, and that the lock is held, in a transaction after which the database stays locked. */
function takeExclusive (database: DatabaseSync) {
  database.exec('PRAGMA journal_mode = PERSIST') // the quickest
  database.exec('BEGIN EXCLUSIVE')
  // Within the transaction: now it needs no lock that others could have.
  database.exec('PRAGMA locking_mode = EXCLUSIVE')
  database.exec('CREATE TABLE IF NOT EXISTS lock (id INTEGER PRIMARY KEY, token INTEGER, held INTEGER)')
  const { token, held } = stateOf(database)
  database.prepare('INSERT OR REPLACE INTO lock VALUES (1, ?, 1)').run(token + 1)
  database.exec('COMMIT')
  return { token: token + 1, held }
}

/** The first read of a transaction locks the database against writers. */
function takeShared (database: DatabaseSync) {
  database.exec('BEGIN')
  const isNew = database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  return isNew ? { token: 0, held: 0 } : stateOf(database)
}

function stateOf (database: DatabaseSync) {
  const row = database.prepare('SELECT token, held FROM lock').get()
  return (row ?? { token: 0, held: 0 }) as { token: number, held: number }
}

function grantOf (database: DatabaseSync, file: string, mode: Mode, token: number, held: number): Grant {
  const inode = inodeOf(file)
  const isThere = () => inode !== undefined && inodeOf(file) === inode
  return {
    token,
    ownerDied: held === 1,
    lost: new AbortController().signal, // only who removes the file takes the lock away
    held: async () => isThere(),
    async release (died) {
      try {
        if (mode === 'exclusive' && !died && isThere()) database.exec('UPDATE lock SET held = 0')
        return isThere()
      } finally {
        database.close()
      }
    }
  }
}

const inodeOf = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.ino

/** Whether an error is SQLITE_BUSY, or that of a file that was removed after it had been opened. */
function isBusy (error: unknown) {
  const { errcode } = error as { errcode?: number }
  return errcode !== undefined && ((errcode & 255) === 5 || errcode === READONLY_DBMOVED)
}
const READONLY_DBMOVED = 1032
