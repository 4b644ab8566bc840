'use strict'

/** Tokens: that something is held. Whoever has one may give it back; it is not a method that everyone has. */

const { own } = require('../realm')
const { agent } = require('../settle')
const createError = require('./error')
const { EXCLUSIVE, LOCK, NOT_HELD, POSITION, REQUEST, SERIAL, WORD } = require('./holdings')

class UnlockToken {
  /**
   * @private made by what is held, from a word and a request (see holdings.js); `serial` is the number of its entry in the table
   *   of holdings, and `place` where that is
   */
  constructor (word, request, place, serial, ownerDied) {
    this[WORD] = word
    this[REQUEST] = request
    this[POSITION] = place
    this[SERIAL] = serial
    this.ownerDied = ownerDied
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
    const word = this[WORD]
    const place = placeOf(this)
    if (place < 0) return endWait(this)
    if (this[REQUEST] === LOCK) giveLock(word, place)
    else word.give(place, this[REQUEST])
    this[SERIAL] = NOT_HELD
    return true
  }
}

/** Where the entry of a token in the table of holdings is; -1 if it has been given back. */
function placeOf (token) {
  return token[WORD].placeOf(token[SERIAL], token[POSITION])
}

if (typeof Symbol.dispose === 'symbol') {
  Object.defineProperty(UnlockToken.prototype, Symbol.dispose, {
    value: function dispose () { this.unlock() }, writable: true, configurable: true
  })
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
const isToken = (value) => typeof value === 'object' && value !== null && value[WORD] !== undefined && value[POSITION] !== undefined

/** Gives a token back that nobody has seen. */
function unlockUnused (token) {
  if (!token.ownerDied) {
    token.unlock()
    return
  }
  agent().holdings.passOn(placeOf(token))
  if (token[REQUEST] === LOCK) notifyHost(token[WORD])
}

function notifyHost (word) {
  const notify = hostNotify()
  if (notify !== undefined) notify(word.array, 0, 1)
}

/** A token that has nothing yet: it can be given what `request` asks of `word`. */
const emptyToken = (word, request) => new UnlockToken(word, request, 0, NOT_HELD, false)

/** Whether nobody else can hold the same together with this token. */
const isExclusive = (token) => token[REQUEST] === LOCK || token[REQUEST] === EXCLUSIVE

const notLocked = (message) => createError(message, 'ERR_NOT_LOCKED')

/**
 * To be called by who was to give back a token that has nothing: a Condition's `waitAsync` that is pending for it would have it
 * take the lock again, for nobody. So that is broken off. Gives false.
 */
function endWait (token) {
  const steps = agent().holdings.stepsOf.get(token)
  if (steps !== undefined) steps.breakOff(notLocked('The token was given back while a promise waited with it'))
  return false
}

module.exports = { UnlockToken, emptyToken, giveLock, isExclusive, isToken, notLocked, notifyHost, placeOf, unlockUnused }
