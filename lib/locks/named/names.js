'use strict'

/**
 * Locks by name: requesting, releasing and stealing them. The native side knows the names of the process, each with its line
 * (src/lock/names.rs); what is held is in this thread's robust list, as every lock is.
 */

const { agent } = require('../../agent/agent')
const { ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, ANSWER, AWAITED_HERE, DEADLOCK, HELD_HERE } = require('../../agent/registers')
const { bare, createArray } = require('../../util/intrinsics')
const { deadlock, deadlockCycle } = require('../../waiting/errors')
const { LATE } = require('../../waiting/late')
const { Claim, ended, lateError } = require('../held/acquire')
const { waits } = require('../held/diagnostics')
const { NAMED_EXCLUSIVE, NAMED_SHARED, cycleOf, read } = require('../held/request')
const { whileBlocked } = require('../held/stalls')
const { newHold, passOn, theList } = require('../held/token')
const { takeInLine } = require('../held/word')

/** A name as it is requested once: what a Word is to other locks. */
class NamedWord {
  constructor (name) {
    this.list = theList()
    this.name = name
    this.token = undefined
    /** Of the native word, once the name has been requested. */
    this.address = 0
    this.isStolen = false
    this.onStolen = undefined
  }

  get id () {
    return this.list.native.binding.wordId(this.address)
  }

  /** As that of a Word, whose key is a number. */
  get key () {
    return this.name
  }

  /** The index of an entry of this thread's for it; -1 if there is none. */
  find () {
    return this.list.find(this.address)
  }

  /** The `threadId` of a thread that holds it by means of this package; null if there is none. */
  holder () {
    return agent().holderOf(this.address)
  }

  /** Releases the name, by the entry at `index`. */
  release (index) {
    this.list.releaseInLine(index)
    if (this.list.native.words[ANSWER] === 0) this.isStolen = true
  }
}
bare(NamedWord)

/** The right to a name, until it is released or stolen. It never leaves the package. */
class Grant {
  constructor (name, shared) {
    agent().native.onSteal = tellOfSteals
    const word = new NamedWord(name)
    this.hold = newHold(word, shared ? NAMED_SHARED : NAMED_EXCLUSIVE)
    word.token = this.hold.token
  }

  /** Whether the last exclusive holder's thread ended while it held the name. */
  get ownerDied () {
    return this.hold.token.ownerDied
  }

  /** Whether another request has stolen the name, as far as this thread has heard. */
  get isStolen () {
    return this.hold.word.isStolen
  }

  /** Called in a later turn of the event loop, at most once, if another request steals the name: see `steal`. */
  set onStolen (listener) {
    this.hold.word.onStolen = listener
  }

  /** True the first time; false if it was released or stolen before. */
  release () {
    const { token, word } = this.hold
    return token.unlock() && !word.isStolen
  }

  /** The same where the callback failed, or has not begun: the next exclusive holder is told of a death of which this one was told. */
  releaseAfterError () {
    const { token, word } = this.hold
    if (!token.ownerDied) return this.release()
    return passOn(token) && agent().native.words[ANSWER] !== 0 && !word.isStolen
  }
}
bare(Grant)

/** A promise that waits for a name. */
class NamedClaim extends Claim {
  claim () {
    const { hold: { request }, timeout, word } = this
    const ownerDied = agent().claimNameAsync(word.name, request, timeout, this)
    word.address = agent().native.floats[ADDRESS]
    return ownerDied
  }
}

/** A new grant, of nothing yet. */
function newGrant (name, shared) {
  theList().tidy()
  return new Grant(name, shared)
}

/** Takes the name, if that needs no waiting. No call that may fail follows. */
const take = ({ hold: { word, request, token } }) => takeInLine(word, request, token, agent().native.operations.takeName)

/** Takes the name alone and at once. Everyone who held it has lost it, and hears of that by `onStolen`. */
const steal = ({ hold: { word, request, token } }) => takeInLine(word, request, token, agent().native.operations.stealName)

/**
 * Calls `call.granted(grant)` once this thread has the name, perhaps at once; or `call.failed` with the signal's reason, or `call.late` with a
 * function that makes a TimeoutError.
 *
 * @param {{ timeout: number, signal: AbortSignal | undefined }} call the signal is not aborted yet
 * @returns {NamedClaim | undefined} undefined: it is over already
 */
function acquireAsync (grant, call) {
  const { timeout } = call
  const error = () => lateError(grant.hold, timeout)
  if (timeout === 0) {
    call.late(error)
    return undefined
  }
  const resolve = (outcome) => outcome === LATE ? call.late(error) : call.granted(grant)
  const claim = new NamedClaim(grant.hold, call, resolve, (reason) => call.failed(reason))
  claim.begin()
  return claim.slot < 0 ? undefined : claim
}

/**
 * Blocks until this thread has the name.
 * @throws {Error} a TimeoutError; or one with code ERR_DEADLOCK if the thread would wait for itself, or close a cycle of threads, as `acquire` says
 */
function acquireSync (grant, timeout, caller) {
  const { hold } = grant
  if (timeout === 0) {
    if (!take(grant)) throw lateError(hold, 0)
    return
  }
  theList().makeRoom()
  const since = waits()
  const { word, request } = hold
  const answer = agent().claimName(word.name, request, timeout, whileBlocked(hold))
  if (answer === HELD_HERE) throw deadlock(caller, 'holds it')
  if (answer === AWAITED_HERE) throw deadlock(caller, 'awaits it')
  if (answer === DEADLOCK) throw deadlockCycle(caller, cycleOf(agent().native.binding.cycle()))
  word.address = agent().native.floats[ADDRESS]
  const ownerDied = answer >= ACQUIRED ? answer === ACQUIRED_FROM_DEAD : undefined
  if (!ended(hold, ownerDied, since)) throw lateError(hold, timeout)
}

/** All requests of the process, in the order in which they were made: `{ held: Info[], pending: Info[] }`. */
function query () {
  const requests = read(agent().native.binding.nameRequests(), 'query')
  const held = createArray(0)
  const pending = createArray(0)
  for (let n = 0; n < requests.length; n++) {
    const list = requests[n].held ? held : pending
    list[list.length] = requests[n]
  }
  return { held, pending }
}

/** Tells the grants that were stolen from this thread. Their entries go: what the callbacks still do, they do without the name. */
function tellOfSteals () {
  const { operations, words } = agent().native
  const list = theList()
  for (;;) {
    operations.nextStolen()
    const number = words[ANSWER] >>> 0
    if (number === 0) return
    const index = list.indexOfRequest(number)
    // It was released before this thread heard of the steal.
    if (index < 0) continue
    const word = list.held[index]
    word.isStolen = true
    try {
      word.release(index)
      tell(word)
    } catch (error) {
      // It must not keep the others from being told: it is reported as an uncaught error.
      process.nextTick(() => { throw error })
    }
  }
}

function tell ({ onStolen }) {
  if (onStolen !== undefined) onStolen()
}

module.exports = { acquireAsync, acquireSync, newGrant, query, steal, take }
