'use strict'

/** The text of a stall: what is awaited, who holds it, what that thread waits for, and the cycle, if there is one. */

const { append } = require('../../util/intrinsics')
const { threadId: own } = require('../../util/worker-threads')
const { cycleText } = require('../../waiting/errors')
const { holderText, orphanText } = require('../../waiting/holder-text')
const { nounOf } = require('../../waiting/kinds')
const { described } = require('./request')
const { robustList } = require('./robust-list')
const { snapshot } = require('./snapshot')

const { round } = Math
/** How many holders are described. */
const MOST = 3

const isExclusive = ({ mode }) => mode === 'exclusive'
/** Permits, and what is no lock, have another mode or none. */
const isOfLock = (entry) => isExclusive(entry) || entry.mode === 'shared'

/** What each claim of a snapshot waits for: permits may be released by each of their holders, but also by other threads. */
function createObstacles ({ held, waiting }) {
  // By id.
  const holders = new Map()
  const writers = new Map()
  // By claim for a share.
  const ahead = new Map()
  for (const hold of held) {
    const list = holders.get(hold.id)
    if (list === undefined) holders.set(hold.id, [hold])
    // One entry for each thread is enough, and a thread's are next to each other.
    else if (list[list.length - 1].threadId !== hold.threadId) append(list, hold)
  }
  for (const claim of waiting) {
    if (isExclusive(claim)) writers.set(claim.id, claim)
    else if (isOfLock(claim) && writers.has(claim.id)) ahead.set(claim, writers.get(claim.id))
  }
  return {
    /** The entries of those who hold what `claim` waits for. */
    holdersFor: (claim) => (holders.get(claim.id) || []).filter((hold) => claim.mode !== 'shared' || isExclusive(hold)),
    /** The entry of the writer that `claim`, for a share, waits behind; undefined if there is none. */
    writerAhead: (claim) => ahead.get(claim)
  }
}

const nounOfEntry = (entry) => entry.kind === 'wait' ? 'a notification' : nounOf(entry)

/** The entry of a wait of this thread; undefined if it is over. */
function entryOf ({ word, request }, waiting, blocked) {
  const { kind, mode } = described(request)
  // A thread blocks for one thing. A name is known by its address only once native code has returned.
  const id = blocked ? undefined : word.id
  return waiting.find(entry => entry.threadId === own && entry.blocked === blocked && entry.kind === kind && entry.mode === mode &&
    (blocked || entry.id === id))
}

/** The threads that hold what an entry waits for; or the writer ahead in the line, if it waits only for that writer. */
function keepersOf (entry, { holdersFor, writerAhead }) {
  // One may have several messages of a queue in use.
  const holders = [...new Set(holdersFor(entry).map(({ threadId }) => threadId))]
  const writer = writerAhead(entry)
  return holders.length > 0 || writer === undefined ? { verb: 'holds', list: holders } : { verb: 'is ahead', list: [writer.threadId] }
}

const sentence = (text) => text === '' ? '' : ' ' + text[0].toUpperCase() + text.slice(1) + '.'
const isPermits = ({ mode }) => mode === 'permits'
const isOfQueue = ({ kind }) => kind === 'Queue'

/** What an entry waits for, and who keeps it waiting. */
function waitText (entry, obstacles) {
  const { verb, list } = keepersOf(entry, obstacles)
  const noun = nounOfEntry(entry)
  if (isOfQueue(entry) && (entry.mode !== 'put' || list.length === 0)) return noun
  if (list.length === 0) return noun + (entry.mode === undefined || isPermits(entry) ? '' : ', of which no holder is known')
  if (verb === 'is ahead') return noun + ' behind thread ' + list[0]
  const more = list.length > MOST ? ' and ' + (list.length - MOST) + ' more' : ''
  const names = (list.length === 1 ? 'thread ' : 'threads ') + list.slice(0, MOST).join(', ') + more
  if (isOfQueue(entry)) return noun + ', of which ' + names + (list.length === 1 ? ' has' : ' have') + ' messages in use'
  return noun + (isPermits(entry) ? ', some of which ' : ' that ') + names + (list.length === 1 ? ' holds' : ' hold')
}

/** What a thread that keeps this one waiting does. */
function doingOf (threadId, entry, waiting, obstacles) {
  if (threadId === own) return isOfQueue(entry) ? ' This thread uses them itself.' : ' This thread holds it itself.'
  const waits = waiting.filter(entry => entry.threadId === threadId)
  const [blocked] = waits.filter(entry => entry.blocked)
  if (blocked !== undefined) return ' Thread ' + threadId + ' is blocked, and waits for ' + waitText(blocked, obstacles) + '.'
  if (waits.length === 0) return ' Thread ' + threadId + ' waits for nothing.'
  const more = waits.length > 1 ? ', and ' + (waits.length - 1) + ' more' : ''
  return ' Thread ' + threadId + ' awaits ' + waitText(waits[0], obstacles) + more + '.'
}

/** Finds out whether this thread holds a word by a token that has been collected. */
function lookAtToken ({ address }) {
  const list = robustList()
  const index = list.find(address)
  if (index >= 0) list.holds.look(list, index)
}

/** The text for a wait of this thread that began so many milliseconds ago; undefined if it is over. */
module.exports = function stallText (hold, age, blocked) {
  const begin = blocked ? 'Thread ' + own + ' has been blocked for ' + round(age) + ' ms, and waits for '
    : 'A promise of thread ' + own + ' has been pending for ' + round(age) + ' ms, and waits for '
  let state
  try {
    lookAtToken(hold.word)
    state = snapshot()
  } catch (_) {
    const { kind, mode } = described(hold.request)
    return begin + nounOf({ kind, mode, name: hold.word.name }) + '. There are too many holds and waits to say more.'
  }
  const { waiting, cycles } = state
  const entry = entryOf(hold, waiting, blocked)
  if (entry === undefined) return undefined
  const obstacles = createObstacles(state)
  let text = begin + waitText(entry, obstacles) + '.'
  for (const threadId of keepersOf(entry, obstacles).list.slice(0, MOST)) text += doingOf(threadId, entry, waiting, obstacles)
  for (const holder of obstacles.holdersFor(entry).slice(0, MOST)) text += sentence(holderText(holder)) + sentence(orphanText(holder))
  const ring = cycles.find(links => links.some(({ waitsFor }) => waitsFor.threadId === own && waitsFor.id === entry.id))
  if (ring !== undefined) text += ' These threads wait for one another: ' + cycleText(ring) + '.'
  return text
}
