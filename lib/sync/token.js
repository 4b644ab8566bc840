'use strict'

/**
 * Tokens: that something is held. Whoever has one may give it back; it is not a method that everyone has.
 *
 * A token knows the number of an entry in the table of holdings, and where that was last. All else is read from the table, so
 * whatever may be written into a token, it stands for an entry of the table or for nothing.
 */

const util = require('util')
const { bare, define, shield } = require('../intrinsics')
const { own } = require('../realm')
const { agent } = require('../settle')
const createError = require('./error')
const { EXCLUSIVE, LOCK, NOT_HELD, POSITION, SERIAL } = require('./holdings')

class UnlockToken {
  /** @private it is made by what is held */
  constructor () {
    this[POSITION] = 0
    this[SERIAL] = NOT_HELD
    this.ownerDied = false
  }

  /** Whether it is still held by this token. */
  get locked () {
    return placeOf(this) >= 0
  }

  /**
   * Gives it back. True the first time, false if it is not held: because that had been done already, or because a Condition's
   * `waitAsync` with it is pending, which this breaks off.
   */
  unlock () {
    const place = placeOf(this)
    if (place < 0) return endWait(this)
    giveBack(place)
    try {
      this[SERIAL] = NOT_HELD
    } catch (_) {
      // Somebody has frozen it.
    }
    return true
  }

  [util.inspect.custom] (depth, options) {
    const { locked, ownerDied } = this
    return this.constructor.name + ' ' + util.inspect({ locked, ownerDied }, options)
  }
}

shield(UnlockToken, [POSITION, SERIAL, 'ownerDied'])

if (typeof Symbol.dispose === 'symbol') {
  define(UnlockToken.prototype, Symbol.dispose, function dispose () { this.unlock() }, false, true)
}

/**
 * What a thread asks for, or has and is to have again: so much of a word, and the token that stands for it.
 *
 * Nobody outside of this package ever sees one, for it has the word.
 */
class Demand {
  constructor (word, request, token, serial, place) {
    this.word = word
    this.request = request
    this.token = token
    // What the token knows, if it is to keep that: its entry's number and a place. NOT_HELD if it is new.
    this.serial = serial
    this.place = place
  }
}
bare(Demand)

/** What is asked of a word, for a new token. */
const demand = (word, request, token = new UnlockToken()) => new Demand(word, request, token, NOT_HELD, 0)

/** What a live token stands for; undefined for any other. */
function demandOf (token) {
  const place = placeOf(token)
  if (place < 0) return undefined
  const { entries, held, serials } = theTable()
  return new Demand(held[place], entries[2 * place + 1], token, serials[place], place)
}

let holdings
let table

/** What this thread holds. */
function theHoldings () {
  if (holdings === undefined) holdings = agent().holdings
  return holdings
}

/** The table of that. Looked at without a call, which would be a tenth of what a lock costs. */
function theTable () {
  if (table === undefined) table = theHoldings().table
  return table
}

/** Where the entry of a token in the table of holdings is; -1 if there is none any more. See `placeOf` in holdings.js. */
function placeOf (token) {
  const serial = token[SERIAL]
  const place = token[POSITION] | 0
  return serial > 0 && theTable().serials[place] === serial ? place : theHoldings().placeOf(serial, place)
}

/** The token of the lock that has just been taken; its entry is at `place` of the table of holdings. */
const lockToken = (word, place) => theHoldings().fill(new UnlockToken(), place, word.inherits(LOCK))

/** What `token` becomes if the request can be had of the word without waiting; otherwise null. */
function tryTake (word, request, token) {
  const place = word.take(request)
  return place < 0 ? null : theHoldings().fillTaken(token, place)
}

/** Gives back what the entry at `place` of the table of holdings says. */
function giveBack (place) {
  const { entries, held } = theTable()
  const word = held[place]
  const request = entries[2 * place + 1]
  if (request === LOCK) giveLock(word, place)
  else word.give(place, request)
}

/** The host's `notify`, where the host's queue is in use: then plain waiters on a lock's word may stand in that. */
function hostNotify () {
  const { notify } = own.host
  return own.Atomics.notify === notify ? notify : undefined
}

/** Gives back the lock that `word` is, by the entry at `place` of the table of holdings. */
function giveLock (word, place) {
  const notify = hostNotify()
  if (notify === undefined) word.giveLock(place)
  else word.giveLockBesideHost(place, notify)
}

/** Whether something is a token, of whichever copy of this package. */
const isToken = (value) => typeof value === 'object' && value !== null && typeof value[SERIAL] === 'number'

/** Gives back what nobody has seen the token of. */
function giveBackUnused ({ word, request, token }) {
  const place = placeOf(token)
  if (!token.ownerDied) {
    giveBack(place)
    return
  }
  theHoldings().passOn(place)
  if (request === LOCK) notifyHost(word)
}

function notifyHost (word) {
  const notify = hostNotify()
  if (notify !== undefined) notify(word.array, 0, 1)
}

/** Whether nobody else can hold the same together with who has asked for this. */
const isExclusive = ({ request }) => request === LOCK || request === EXCLUSIVE

const notLocked = (message) => createError(message, 'ERR_NOT_LOCKED')

/**
 * To be called by who was to give back a token that has nothing: a Condition's `waitAsync` that is pending for it would have it
 * take the lock again, for nobody. So that is broken off. Gives false.
 */
function endWait (token) {
  const steps = theHoldings().stepsOf.get(token)
  if (steps !== undefined) steps.breakOff(notLocked('The token was given back while a promise waited with it'))
  return false
}

module.exports = {
  UnlockToken, demand, demandOf, giveBack, giveBackUnused, giveLock, isExclusive, isToken, lockToken, notLocked, notifyHost, theHoldings, tryTake
}
