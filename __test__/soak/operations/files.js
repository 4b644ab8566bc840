'use strict'

// Locks of files, of which all threads and processes of the machine have one at a time. Laws: those of read-write
// locks; tokens grow; `query` names no holder twice. Node 16 and newer.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { MAJOR } = require('../subject')
const holding = require('./holding')

const { beginToRead, beginToWrite, endToHold, endToRead } = holding

/** The folder of a soak's locks, for all of its threads. */
const FOLDER = path.join(os.tmpdir(), `atomics-waitasync-soak-${process.pid}`)

let opened

function locksOfFiles () {
  if (opened === undefined) opened = require('../../../processes').processLocks(FOLDER)
  return opened
}

const hold = (actor, ...rest) => holding.request(actor, locksOfFiles(), ...rest)

async function holdByToken (actor, index, options, begin, end) {
  const lock = await actor.attempt(options, async () => {
    const lock = await locksOfFiles().hold(actor.arena.nameOf(index), options)
    return lock === null ? undefined : lock
  })
  if (lock === undefined || lock === true) return false
  await begin(lock)
  await actor.linger()
  end()
  if (options.mode !== 'shared' && actor.chance(0.05)) {
    actor.arena.add('deaths', 0, 1)
    actor.require(lock.abandon(), () => 'a lock of a file was not abandoned')
  }
  await lock.unlock()
  return true
}

async function request (actor, index) {
  const { arena } = actor
  const isShared = actor.chance(0.5)
  const mode = isShared ? 'shared' : 'exclusive'
  const options = Object.assign({ mode }, actor.chance(0.1) ? { ifAvailable: true } : actor.options())
  const begin = lock => {
    if (isShared) return beginToRead(actor, 'file', index, lock)
    // Of the microseconds in it, the low bits of a word tell which came first. Requests of one batch have the same.
    const token = lock.token | 0
    const last = arena.get('fileToken', index)
    actor.require(last === 0 || (token - last | 0) >= 0, () => `token ${token} of a file after ${last}`)
    beginToWrite(actor, 'file', index, lock)
    arena.set('fileToken', index, token)
  }
  const end = () => isShared ? endToRead(actor, 'file', index) : endToHold(actor, 'file', index)
  const form = actor.chance(0.3) && !actor.blocks ? holdByToken : hold
  return form(actor, index, options, begin, end)
}

async function query (actor, index) {
  const { held } = await locksOfFiles().query(actor.arena.nameOf(index))
  const alone = held.filter(({ mode }) => mode === 'exclusive')
  actor.require(alone.length < 2, () => `a lock of a file has ${alone.length} holders`)
}

/** Checks, after a round, that each lock can be had, and that no death is reported twice. */
async function checkEnd (arena, count) {
  if (opened === undefined) return
  for (let index = 0; index < count; index++) {
    const name = arena.nameOf(index)
    await opened.request(name, { ifAvailable: true }, lock => {
      if (lock === null) throw new Error(`the lock of file ${index} is free, and cannot be taken`)
    })
    await opened.request(name, { ifAvailable: true }, ({ ownerDied }) => {
      if (ownerDied) throw new Error(`the lock of file ${index} tells of a death twice`)
    })
  }
}

function removeAll () {
  if (opened !== undefined) fs.rmSync(FOLDER, { recursive: true, force: true })
}

const operations = [
  { name: 'file', weight: 4, of: 'file', bursts: true, run: request },
  { name: 'query of a file', weight: 1, of: 'file', run: query }
]

module.exports = { checkEnd, operations: MAJOR < 16 ? [] : operations, removeAll }
