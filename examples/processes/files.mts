import fs from 'node:fs'
// @ts-expect-error: it has no types.
import { tryLock } from 'fs-native-extensions'
import type { Engine, Grant, Mode } from './process-locks.mts'
import { inFolder } from './tools.mts'

/**
 * Locks of the processes of one machine, without a server, by locks of files that belong to their descriptor. Nothing
 * is flushed to the disk: tokens survive the death of processes, but may go back when the machine loses power.
 */
export const files = (folder: string): Engine => inFolder('files', folder, attempt)

/** Takes the lock unless another descriptor has it. */
function attempt (file: string, mode: Mode): Grant | undefined {
  const descriptor = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT)
  try {
    // A file that was removed meanwhile is no longer that of the name.
    if (tryLock(descriptor, { shared: mode === 'shared' }) && isThere(descriptor)) return grantOf(descriptor, mode)
  } catch (error) {
    fs.closeSync(descriptor)
    throw error
  }
  fs.closeSync(descriptor)
  return undefined
}

const isThere = (descriptor: number) => fs.fstatSync(descriptor).nlink > 0

function grantOf (descriptor: number, mode: Mode): Grant {
  const state = readState(descriptor)
  const token = mode === 'exclusive' ? state.token + 1 : state.token
  if (mode === 'exclusive') writeState(descriptor, token, true)
  return {
    token,
    ownerDied: state.held,
    lost: new AbortController().signal, // only who removes the file takes the lock away
    held: async () => isThere(descriptor),
    async release (died) {
      try {
        if (mode === 'exclusive' && !died) writeState(descriptor, token, false)
        return isThere(descriptor)
      } finally {
        fs.closeSync(descriptor) // which ends the lock
      }
    }
  }
}

/** Nine bytes: the token, and whether it is held. */
function readState (descriptor: number) {
  const bytes = Buffer.alloc(9)
  fs.readSync(descriptor, bytes, 0, 9, 0)
  return { token: bytes.readDoubleLE(0), held: bytes[8] === 1 }
}

/** Writes by one system call: so the death of the process leaves all of it or nothing. */
function writeState (descriptor: number, token: number, held: boolean) {
  const bytes = Buffer.alloc(9)
  bytes.writeDoubleLE(token, 0)
  bytes[8] = Number(held)
  fs.writeSync(descriptor, bytes, 0, 9, 0)
}
