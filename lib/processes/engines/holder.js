'use strict'

/** Holders and waiters, described for `query`; and the keys of names. */

const { createHash, randomUUID } = require('crypto')
const os = require('os')

const LONGEST = 256 // characters of a name that a server keeps for people; the key has all of it

/** Makes a key of 32 bytes for any name: also for a long one, or invalid Unicode. */
const keyOf = name => createHash('sha256').update(Buffer.from(name, 'utf16le')).digest()

const HOST = os.hostname()

/**
 * Returns a description as JSON, which no other one equals. JSON escapes what is no Unicode.
 * @param {{ label?: string, threadId?: number }} who
 */
function describeHolder (name, { label, threadId } = {}) {
  return JSON.stringify({
    id: randomUUID(), name: shorten(name), pid: process.pid, host: HOST, threadId, label, since: Date.now()
  })
}

/** Returns the entry of `query` for a description. It is empty if no engine of ours has written that. */
function infoOf (text, mode) {
  const { name, pid, host, threadId, label, since } = parsed(text)
  return { name, mode, pid, host, threadId, label, since, isOurs: isOurs(pid, host) }
}

function parsed (text) {
  try {
    return Object(JSON.parse(text))
  } catch (_) {
    return {}
  }
}

const isOurs = (pid, host) => pid === process.pid && host === HOST

const shorten = name => name.length > LONGEST ? name.slice(0, LONGEST - 1) + '…' : name

module.exports = { HOST, describeHolder, infoOf, isOurs, keyOf, shorten }
