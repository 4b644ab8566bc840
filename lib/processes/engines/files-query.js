'use strict'

/**
 * Who holds the locks of files, and who waits: by their states, and on Linux by /proc/locks, which has the waiters.
 *
 * The kernel shows locks of the processes that this one can see. Of others, such as those of another container, the
 * state says whether the lock was released, and an attempt whether its holder is alive.
 */

const fs = require('fs')
const path = require('path')
const { infoOf } = require('./holder')

// As in src/processes/state.rs.
const HEADER = 40
const SINCE = 16
const MARK = 24
const LENGTH = 28

/**
 * @param {string | undefined} key of one name; undefined: all
 * @param {(key: string) => boolean} isAbandoned whether nobody has the exclusive lock of a key
 */
module.exports = function query (folder, key, isAbandoned) {
  const keys = key === undefined ? keysIn(folder) : [key]
  const kernel = lockedInodes()
  const held = []
  const pending = []
  for (const each of keys) {
    const file = path.join(folder, each + '.lock')
    const state = readState(file)
    if (state === undefined) continue
    const { info, since, isMarked, inode } = state
    const { name } = info
    const locks = kernel === undefined ? [] : kernel.get(inode) || []
    const holders = locks.filter(({ isWaiting }) => !isWaiting)
    const isExclusive = holders.length === 0 ? isMarked && !isAbandoned(each) : holders[0].mode === 'exclusive'
    if (isMarked && isExclusive) held.push({ ...info, since })
    else for (const { pid, mode } of holders) held.push(infoOfPid(name, mode, pid))
    const gate = kernel === undefined ? [] : kernel.get(inodeOf(path.join(folder, each + '.gate'))) || []
    for (const { pid, mode } of [...locks, ...gate].filter(({ isWaiting }) => isWaiting)) {
      pending.push(infoOfPid(name, mode, pid))
    }
  }
  return kernel === undefined ? { held } : { held, pending }
}

const infoOfPid = (name, mode, pid) => ({ name, mode, pid, isOurs: pid === process.pid })

function keysIn (folder) {
  const names = fs.readdirSync(folder)
  return names.filter((name) => /^[0-9a-f]{64}\.lock$/.test(name)).map((name) => name.slice(0, 64))
}

function inodeOf (file) {
  const found = fs.statSync(file, { throwIfNoEntry: false, bigint: true })
  return found && String(found.ino)
}

/** Reads the state of a file; undefined if there is none. */
function readState (file) {
  let bytes
  try {
    bytes = fs.readFileSync(file)
  } catch ({ code }) {
    return undefined
  }
  const inode = inodeOf(file)
  if (bytes.length < HEADER) return { info: infoOf('{}', 'exclusive'), since: undefined, isMarked: false, inode }
  const text = bytes.toString('utf8', HEADER, HEADER + bytes.readUInt32LE(LENGTH))
  const since = Number(bytes.readBigUInt64LE(SINCE))
  return { info: infoOf(text, 'exclusive'), since, isMarked: bytes.readUInt32LE(MARK) === 1, inode }
}

/** Returns the locks of files that the kernel shows, by inode; undefined where it shows none. */
function lockedInodes () {
  let text
  try {
    text = fs.readFileSync('/proc/locks', 'utf8')
  } catch (_) {
    return undefined
  }
  const locks = new Map()
  for (const line of text.split('\n')) {
    // 1:  -> FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF
    const found = /^\d+:( +->)? +FLOCK +\S+ +(READ|WRITE) +(\d+) [\da-f]+:[\da-f]+:(\d+) /.exec(line)
    if (found === null) continue
    const [, isWaiting, mode, pid, inode] = found
    if (!locks.has(inode)) locks.set(inode, [])
    locks.get(inode).push({
      isWaiting: isWaiting !== undefined, mode: mode === 'READ' ? 'shared' : 'exclusive', pid: Number(pid)
    })
  }
  return locks
}
