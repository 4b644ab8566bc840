'use strict'

/**
 * Who holds the locks of files, and who waits: by the files (src/file_locks/state.rs), and on Linux by /proc/locks.
 *
 * The kernel shows locks of the processes that this one can see, with those that wait. Of others, such as those of
 * another container, the file says whether the lock is held, and, of an exclusive one, by whom.
 *
 * Others can write to the folder: what is there may be no lock, or say anything. Locks that are this process's own are
 * told by the kernel where it shows any.
 */

const fs = require('fs')
const path = require('path')
const { now } = require('../../util/intrinsics')
const { setImmediate } = require('../../util/timers')
const { infoOf, keyOf, parsed } = require('./holder')

const SLICE = 5 // milliseconds, after which the event loop has its turn
/** How often /proc/locks is read again. For a lock that is missing there or comes twice, and for a query in all. */
const READS = 3
const MOST_READS = 20
/** The byte of a gate that stands for process 0. Its lock tells of a shared request: see src/file_locks/state.rs. */
const READERS = 0x40000002
/** The system's answers where it shows no such file. */
const ABSENT = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']

/**
 * @param {string | undefined} name undefined: all
 * @param {(file: string) => object | undefined} look at a file
 */
async function query (folder, name, look) {
  if (name !== undefined) return querySync(folder, name, look)
  const { answer, isThere, kernel } = begin(folder)
  let began = now()
  // A folder may have many.
  for (const file of isThere ? fs.readdirSync(folder) : []) {
    const [, key] = /^([0-9a-f]{64})\.lock$/.exec(file) || []
    try {
      if (key !== undefined) lookAt(folder, key, look, kernel, answer)
    } catch (error) {
      // One that this process may not open is none of its locks.
      if (!ABSENT.includes(error.code)) throw error
    }
    if (now() - began < SLICE) continue
    await new Promise(resolve => setImmediate(resolve))
    began = now()
  }
  return answer
}

function querySync (folder, name, look) {
  const { answer, isThere, kernel } = begin(folder)
  if (isThere) lookAt(folder, keyOf(name).toString('hex'), look, kernel, answer)
  return answer
}

/** Reads what the kernel shows. Where that is nothing, nobody knows who waits, unless the folder cannot be reached. */
function begin (folder) {
  const isThere = fs.existsSync(folder)
  const kernel = isThere ? locksOn(folder) : undefined
  const knowsAll = isThere ? kernel !== undefined : process.platform === 'linux'
  return { answer: knowsAll ? { held: [], pending: [] } : { held: [] }, isThere, kernel }
}

/** Adds those that hold and await the lock of a key. */
function lookAt (folder, key, look, kernel, { held, pending }) {
  const file = path.join(folder, key + '.lock')
  const state = look(file)
  // Those that make the permits of a name are no names.
  if (state === undefined || Object(parsed(state.description || '')).permits !== undefined) return
  const locksOf = file => kernel === undefined ? [] : kernel.of(inodeOf(file))
  let [holders, waiters] = parted(locksOf(file))
  // The kernel shows a page at a time: a lock may be missing, or come twice, if others change meanwhile.
  const isMissing = () => holders.length === 0 && state.mode !== undefined
  const isTwice = () => new Set(holders.map(({ pid }) => pid)).size < holders.length
  for (let n = 0; n < READS && kernel !== undefined && kernel.readsLeft > 0 && (isMissing() || isTwice()); n++) {
    kernel.readsLeft--
    kernel.of = (locksOn(folder) || kernel).of;
    [holders, waiters] = parted(locksOf(file))
  }
  const [passing, behind] = parted(locksOf(path.join(folder, key + '.gate')))
  // Those that pass the gate without a wait share it.
  const first = passing.filter(({ isWrite }) => isWrite)
  const mode = holders.length > 0 ? holders[0].mode : state.mode
  if (mode === undefined && first.length + behind.length + waiters.length === 0) return

  const info = infoOf(state.description || '', 'exclusive', key)
  const entryOf = ({ mode, pid }) => ({ name: info.name, mode, pid, isOurs: pid === process.pid })
  const isOurs = kernel === undefined ? info.isOurs : holders.some(({ pid }) => pid === process.pid)
  // A state without the mark is that of a lock that is being taken or given back.
  const isKnown = state.isMarked && info.isOurs === isOurs
  if (mode === 'exclusive' && isKnown) held.push({ ...info, since: state.since })
  else if (holders.length > 0) held.push(...holders.map(entryOf))
  else if (mode === 'shared' || (mode === 'exclusive' && state.isMarked !== false)) {
    held.push({ name: info.name, mode, isOurs })
  }
  if (pending === undefined) return
  // Whoever has the gate is the first in line. It may not wait for the lock yet, or any more.
  const early = first.filter(({ pid }) => !waiters.some(each => each.pid === pid))
  pending.push(...[...early, ...waiters, ...behind].map(entryOf))
}

/** Parts locks into those that are held and those that wait. The kernel may show one twice. */
function parted (locks) {
  const isFirst = (each, n, all) => all.findIndex(({ pid, mode }) => pid === each.pid && mode === each.mode) === n
  const held = locks.filter(({ isWaiting }) => !isWaiting)
  const waiting = locks.filter(({ isWaiting }) => isWaiting)
  return [held.some(({ mode }) => mode === 'exclusive') ? held.filter(isFirst) : held, waiting.filter(isFirst)]
}

/** Returns what a function does; undefined where there is no such file. */
function found (fn) {
  try {
    return fn()
  } catch (error) {
    if (ABSENT.includes(error.code)) return undefined
    throw error
  }
}

function inodeOf (file) {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false, bigint: true })
  return stat && String(stat.ino)
}

/** Returns the locks of a folder's files, by inode. Undefined where the kernel shows none. */
function locksOn (folder) {
  const device = found(() => deviceOf(folder))
  const text = device && found(() => fs.readFileSync('/proc/locks', 'latin1'))
  if (text === undefined) return undefined
  // Processes have the numbers that they have where /proc is from.
  const self = Number(fs.readlinkSync('/proc/self'))
  const locks = new Map()
  const readers = new Map()
  const add = (map, inode, value) => map.has(inode) ? map.get(inode).push(value) : map.set(inode, [value])
  for (const line of text.split('\n')) {
    // 1:  -> FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF
    const [, waits, type, mode, pid, where, inode, start] =
      /^\d+:( +->)? +(FLOCK|OFDLCK) +\S+ +(READ|WRITE) +(-?\d+) ([\da-f]+:[\da-f]+):(\d+) (\d+) /.exec(line) || []
    if (where !== device) continue
    if (type === 'OFDLCK') add(readers, inode, Number(start) - READERS)
    else add(locks, inode, { isWaiting: waits !== undefined, isWrite: mode === 'WRITE', pid: Number(pid) })
  }
  const isReader = (pid, inode) => readers.has(inode) && readers.get(inode).includes(pid)
  const of = inode => (locks.get(inode) || []).map(({ isWaiting, isWrite, pid }) => ({
    isWaiting,
    isWrite,
    mode: !isWrite || isReader(pid, inode) ? 'shared' : 'exclusive',
    pid: pid === self ? process.pid : pid
  }))
  return { of, readsLeft: MOST_READS }
}

/** Returns the device of a folder's drive as /proc/locks has it: `stat` has another one on Btrfs and overlays. */
function deviceOf (folder) {
  if (process.platform !== 'linux') return undefined
  const descriptor = fs.openSync(folder, 'r')
  try {
    const [, mount] = /^mnt_id:\s*(\d+)$/m.exec(fs.readFileSync('/proc/self/fdinfo/' + descriptor, 'latin1')) || []
    const mounts = fs.readFileSync('/proc/self/mountinfo', 'latin1')
    const [, ...numbers] = new RegExp(`^${mount} \\d+ (\\d+):(\\d+) `, 'm').exec(mounts) || []
    const [major, minor] = numbers.map(each => Number(each).toString(16).padStart(2, '0'))
    return major && major + ':' + minor
  } finally {
    fs.closeSync(descriptor)
  }
}

module.exports = { query, querySync }
