'use strict'

/** Holders and waiters, described for `query`; and the keys of names. */

const fs = require('fs')
const os = require('os')
const { load } = require('../../agent/load-binding')
const { wallClock } = require('../../util/timers')

const LONGEST = 256 // characters of a text that a server keeps for people; the key has all of a name
/** As many characters as a description has at most. One that is longer is not read. */
const MOST = 4096
const LATEST = 8.64e15 // milliseconds of a `Date`

/** The name that was asked for last, and its key. */
let last = { name: undefined, key: undefined }

/** Makes a key of 32 bytes for any name: also for a long one, or invalid Unicode. */
function keyOf (name, part) {
  // Names have an even number of bytes.
  if (part !== undefined) return sha256(Buffer.concat([Buffer.from(name, 'utf16le'), Buffer.from([...part, 0])]))
  if (last.name !== name) last = { name, key: sha256(Buffer.from(name, 'utf16le')) }
  return last.key
}

const sha256 = bytes => Buffer.from(load().sha256(bytes), 'hex')

const HOST = os.hostname()

let known

/**
 * Tells this process from others of the same number and host: in another container, on another machine, or before a
 * restart. Empty where the system does not say.
 */
function birth () {
  if (known !== undefined) return known
  try {
    const machine = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1')
    const stat = fs.readFileSync('/proc/self/stat', 'latin1')
    // The time of its start. The second field, its program, may have spaces.
    const start = stat.slice(stat.lastIndexOf(')')).split(' ')[20]
    const all = [machine, fs.readlinkSync('/proc/self/ns/pid'), start].join()
    known = sha256(Buffer.from(all)).toString('base64url').slice(0, 8)
  } catch (_) {
    known = ''
  }
  return known
}

/** Makes JSON of ASCII only: a database of any encoding can keep it. JSON escapes what is no Unicode anyway. */
const ascii = value =>
  JSON.stringify(value).replace(/[\x7f-\uffff]/g, unit => '\\u' + unit.charCodeAt(0).toString(16).padStart(4, '0'))

/** Begins the descriptions of this thread, each of which has a number. */
let ours
let described = 0

/**
 * Returns a description as JSON, which no other one equals.
 * @param {{ label?: string, threadId?: number }} who
 */
function describeHolder (name, { label, threadId } = {}) {
  if (ours === undefined) {
    const id = require('crypto').randomUUID()
    ours = ascii({ pid: process.pid, host: HOST, birth: birth(), id }).slice(0, -2)
  }
  const asked = ascii({ name: shorten(name), threadId, label: label && shorten(label) }).slice(1)
  return `${ours} ${++described}","since":${wallClock()},${asked}`
}

const text = value => typeof value === 'string' ? shorten(value) : undefined
const number = (least, most) => value => Number.isSafeInteger(value) && value >= least && value <= most
  ? value
  : undefined

/** What an entry of `query` has. Others may have written it, so each field is undefined unless it has its type. */
const FIELDS = {
  name: text, pid: number(1, 2 ** 32), host: text, threadId: number(0, 2 ** 32), label: text, since: number(0, LATEST)
}

function checked (found) {
  return Object.fromEntries(Object.entries(FIELDS).map(([key, read]) => [key, read(found[key])]))
}

/** Makes an entry of `query` of what somebody says of itself. */
function entry (found, mode) {
  const info = checked(found)
  return { ...info, mode, isOurs: isOurs(info, found.birth) }
}

/**
 * Returns the entry for a description: if no engine of ours has written that, it has a name only.
 * @param {string} [key] of the lock, in hexadecimal
 */
function infoOf (description, mode, key) {
  const info = entry(Object(parsed(description)), mode)
  return { ...info, name: nameFor(info.name, key, name => keyOf(name).toString('hex')) }
}

/** Reads JSON; undefined if it is none, or longer than ours. */
function parsed (json) {
  try {
    return json.length > MOST ? undefined : JSON.parse(json)
  } catch (_) {
    return undefined
  }
}

/** Returns the name that a lock is said to have; or its key, if that is of another name. One that was cut may be. */
function nameFor (name, key, hash) {
  if (typeof name !== 'string') return key
  const isCut = name.length === LONGEST && name.endsWith('…')
  return isCut || hash(name) === key ? name : key
}

function isOurs ({ pid, host }, born) {
  return pid === process.pid && born === birth() && (born !== '' || host === shorten(HOST))
}

const shorten = name => name.length > LONGEST ? name.slice(0, LONGEST - 1) + '…' : name

module.exports = {
  HOST, MOST, ascii, birth, checked, describeHolder, entry, infoOf, keyOf, nameFor, parsed, shorten
}
