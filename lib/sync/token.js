'use strict'

/** Tokens: that something is held. Whoever has one may give it back; it is not a method that everyone has. */

const { own } = require('../realm')
const { agent } = require('../settle')
const { COUNT, EXCLUSIVE, LOCK, POSITION, REQUEST, WORD } = require('./holdings')

class UnlockToken {
  /** @private made by what is held */
  constructor (word, request, amount = 0) {
    this[WORD] = word
    this[REQUEST] = request
    this[COUNT] = amount
    // Its place in the table of holdings; -1 when it is not there.
    this[POSITION] = -1
    this.ownerDied = false
  }

  /** Whether it is still held by this token. */
  get locked () {
    return this[POSITION] >= 0
  }

  /** Gives it back. True the first time, false if that had been done already. */
  unlock () {
    if (this[POSITION] < 0) return false
    agent().holdings.give(this)
    if (this[REQUEST] === LOCK) notifyHost(this[WORD])
    return true
  }
}

if (typeof Symbol.dispose === 'symbol') {
  Object.defineProperty(UnlockToken.prototype, Symbol.dispose, {
    value: function dispose () { this.unlock() }, writable: true, configurable: true
  })
}

/** Where the host's queue is in use, plain waiters on a lock's word may stand in that. */
function notifyHost (word) {
  const { notify } = own.host
  if (notify !== undefined && own.Atomics.notify === notify) notify(word.array, 0, 1)
}

/** Whether something is a token, of whichever copy of this package. */
const isToken = (value) => typeof value === 'object' && value !== null && value[WORD] !== undefined && value[POSITION] !== undefined

/** Gives a token back that nobody has seen. */
function unlockUnused (token) {
  if (!token.ownerDied) {
    token.unlock()
    return
  }
  agent().holdings.passOn(token)
  if (token[REQUEST] === LOCK) notifyHost(token[WORD])
}

/** Whether nobody else can hold the same together with this token. */
const isExclusive = (token) => token[REQUEST] === LOCK || token[REQUEST] === EXCLUSIVE

function notLocked (message) {
  const error = new Error(message)
  error.code = 'ERR_NOT_LOCKED'
  return error
}

module.exports = { UnlockToken, isExclusive, isToken, notLocked, notifyHost, unlockUnused }
