'use strict'

/**
 * What can be requested of a word, and what words hold; core/src/lock/ has the same numbers, and the rules.
 *
 * A request is a number, `kind + KINDS * amount`. The amount is 0 where there is nothing to count.
 */

const { RangeError, createMap, parse } = require('../../util/intrinsics')
const { NOTIFIED, PURPOSES, nounOf } = require('../../waiting/kinds')

const LOCK = 0
const SHARED = 1
const EXCLUSIVE = 2
/** Permits that return when their holder dies. */
const PERMITS = 3
/** Permits that nobody holds. */
const SIGNALS = 4
/** A lock by its name; native code puts the number of the request in the place of the amount. */
const NAMED_SHARED = 5
const NAMED_EXCLUSIVE = 6
/** In a snapshot: a notification, with its purpose in the place of the amount. */
const NOTIFICATION = 7
/** The lock of a step of a queue, held for a moment. No snapshot shows it. */
const INNER = 8
/** A message of a queue that is in use; the amount is how many words behind the queue's first word its own is. */
const LEASE = 9
/** Nothing is held: if this thread dies, the events at that word are raised, since it owes that to those who wait for them. */
const DEBT = 10
/** As PERMITS, of a semaphore that has a limit: its word counts the permits that are taken, and the limit is the view's (word.js). */
const LIMITED = 11

/** How many kinds there is room for. */
const KINDS = 16

const UNLOCKED = 0
const LOCKED = 1
const WRITING = -1
/** The largest number of readers or permits. */
const MOST = 0x7fffffff
/** In the place of a limit where there is none. */
const NO_LIMIT = 0

/** A value that no word holds. */
const UNAVAILABLE = -0x80000000

const requestOf = (kind, amount) => kind + KINDS * amount
const kindOf = (request) => request % KINDS
const amountOf = (request) => (request - kindOf(request)) / KINDS
/** Whether what is requested has a holder. */
const isOwned = (request) => kindOf(request) !== SIGNALS
/** Whether a lock is requested by its name. */
const isNamed = (request) => kindOf(request) === NAMED_SHARED || kindOf(request) === NAMED_EXCLUSIVE

/** The kind of a request, and its mode, if it has one. */
function described (request) {
  switch (kindOf(request)) {
    case LOCK: return { kind: 'AsyncLock', mode: 'exclusive' }
    case SHARED: return { kind: 'RwLock', mode: 'shared' }
    case EXCLUSIVE: return { kind: 'RwLock', mode: 'exclusive' }
    case NAMED_SHARED: return { kind: 'named', mode: 'shared' }
    case NAMED_EXCLUSIVE: return { kind: 'named', mode: 'exclusive' }
    case NOTIFICATION: return NOTIFIED[amountOf(request) % PURPOSES]
    case LEASE: return { kind: 'Queue', mode: 'use' }
    default: return { kind: 'Semaphore', mode: 'permits' }
  }
}

/** A noun phrase for what is requested. */
function nounOfHold ({ word, request }) {
  const { kind, mode } = described(request)
  return nounOf({ kind, mode, name: word.name })
}

/** What native code tells of all that is held and awaited; null if a string cannot hold that. */
function parseList (json, caller) {
  if (json === null) throw new RangeError(caller + ': what is held and awaited has too many entries, or names that are too long, for one string')
  return parse(json)
}

/** Gives the texts of stacks, by the numbers by which native code knows them; each once. */
function stackTexts (binding) {
  const texts = createMap()
  return (number) => {
    if (!texts.has(number)) texts.set(number, binding.stackText(number))
    return texts.get(number)
  }
}

/**
 * An entry of a snapshot, from what native code writes of it: see `Named::write` in src/observe/snapshot.rs.
 * @param {'taken' | 'called'} place what the stack is called that the entry has, if stalls are reported
 */
function entryOf (written, place, stackText) {
  const request = written[0]
  const name = written[1]
  const microseconds = written[5]
  const { kind, mode } = described(request)
  return {
    kind,
    ...mode === undefined ? null : { mode },
    ...name === null ? null : { name },
    ...kind === 'Semaphore' ? { amount: amountOf(request) } : null,
    id: written[2],
    threadId: written[3],
    ...typeof written[6] === 'string' ? { threadName: written[6] } : null,
    blocked: written[4],
    // It is not known of a promise of `Atomics.waitAsync` itself.
    milliseconds: microseconds === null ? NaN : microseconds / 1000,
    ...written.length > 7 && written[7] !== 0 ? { [place]: stackText(written[7]) } : null,
    ...written.length > 8 ? { collected: true } : null
  }
}

/** A ring, of what each thread has and what it waits for. It is certain if all are blocked: then none of them can do anything else. */
function ringOf (links) {
  let certain = true
  for (let n = 0; n < links.length; n++) certain = certain && links[n].waitsFor.blocked
  for (let n = 0; n < links.length; n++) {
    const { holds, waitsFor } = links[n]
    links[n] = { threadId: waitsFor.threadId, holds, waitsFor, blocked: waitsFor.blocked, certain }
  }
  return links
}

/** A cycle of threads, from what native code writes of it. */
function cycleOf (binding) {
  const links = parse(binding.cycle())
  const stackText = stackTexts(binding)
  for (let n = 0; n < links.length; n++) {
    const waitsFor = entryOf(links[n][1], 'called', stackText)
    // A thread may only be ahead in the line: then this is the same wait.
    const holds = entryOf(links[n][0], links[n][0][2] === waitsFor.id ? 'called' : 'taken', stackText)
    links[n] = { threadId: holds.threadId, holds, waitsFor }
  }
  return links
}

/**
 * What a word that holds `current` holds after a request, other than LOCK, has been granted; UNAVAILABLE if it cannot be granted now.
 * @param {number} limit how many permits may be taken together; NO_LIMIT if the word does not count those
 */
function after (request, current, limit) {
  const kind = kindOf(request)
  if (kind === SHARED) return current >= 0 && current < MOST ? current + 1 : UNAVAILABLE
  if (kind === EXCLUSIVE) return current === UNLOCKED ? WRITING : UNAVAILABLE
  if (kind === INNER || kind === LEASE) return current === UNLOCKED ? LOCKED : UNAVAILABLE
  const amount = amountOf(request)
  if (kind !== LIMITED) return current >= amount ? current - amount : UNAVAILABLE
  // A negative word, which only a program can have written, counts as 0.
  const taken = current > 0 ? current + amount : amount
  return taken <= limit ? taken : UNAVAILABLE
}

/** By how much a word grows when permits that were held come back. */
const comingBack = (request) => kindOf(request) === LIMITED ? -amountOf(request) : amountOf(request)

module.exports = {
  LOCK, SHARED, EXCLUSIVE, PERMITS, SIGNALS, NAMED_SHARED, NAMED_EXCLUSIVE, NOTIFICATION, INNER, LEASE, DEBT, LIMITED, UNLOCKED, LOCKED,
  WRITING, MOST, NO_LIMIT, UNAVAILABLE,
  after, amountOf, comingBack, cycleOf, described, entryOf, isNamed, isOwned, kindOf, nounOfHold, parseList, requestOf, ringOf, stackTexts
}
