'use strict'

/**
 * The forms of `locks` that give a token: `hold`, `holdAsync` and `tryHold`, without the check of `this`.
 *
 * Everything that may throw is made before the name is taken: afterwards there might be no stack for it.
 */

const { bare } = require('../util/intrinsics')
const { LATE, hideFrames } = require('../waiting/errors')
const { assertWorker } = require('../waiting/wait-options')
const { blockOrThrow, claimed, lateError, resolved } = require('../holding/acquire')
const { newHold } = require('../holding/token')
const { abortReason, assertRequestable, checkAsync, readOfHold } = require('./arguments')
const { newNamedWord, stolenError } = require('./names')
const NamedToken = require('./named-token')

/** The arguments of a call. */
class Wanted {
  constructor () {
    this.name = ''
    this.shared = false
    this.ifAvailable = this.steal = false
    this.signal = undefined
    this.timeout = Infinity
  }
}
bare(Wanted)

exports.hold = function hold (given) {
  const wanted = new Wanted()
  readOfHold(wanted, given, 'hold')
  assertRequestable(wanted, 'hold')
  assertWorker('hold', 'holdAsync()')
  const held = newNamedHold(wanted)
  return take(held) ? held.token : blockOrThrow(held, wanted.timeout, 'hold')
}

exports.tryHold = function tryHold (given) {
  const wanted = new Wanted()
  readOfHold(wanted, given, 'tryHold')
  assertRequestable(wanted, 'tryHold')
  const held = newNamedHold(wanted)
  return take(held) ? held.token : null
}

exports.holdAsync = function holdAsync (given) {
  const wanted = new Wanted()
  readOfHold(wanted, given, 'holdAsync')
  checkAsync(wanted, 'holdAsync')
  const { steal, timeout } = wanted
  const held = newNamedHold(wanted)
  const promise = resolved(held.token)
  if (steal ? held.word.steal(held.token) : take(held)) return promise
  if (timeout === 0) throw lateError(held, 0)
  return claimed(held, wanted, held.token, (granted) => kept(granted, held, wanted))
}

function newNamedHold ({ name, shared }) {
  const word = newNamedWord(name, shared)
  return newHold(word, word.request, new NamedToken(word))
}

const take = ({ word, request, token }) => word.take(request, token)

/** Settles as the claim does; a name that has been stolen meanwhile is not given. */
async function kept (granted, hold, { signal, timeout }) {
  let outcome
  try {
    outcome = await granted
  } catch (reason) {
    throw abortReason(signal, reason)
  }
  if (outcome === LATE) throw hideFrames(lateError(hold, timeout), kept)
  if (hold.word.isStolen) throw stolenError(hold.word.name)
  return outcome
}
