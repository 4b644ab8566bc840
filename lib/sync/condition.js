'use strict'

/**
 * `Condition`: waiting, while holding a lock, until somebody who holds it has changed something.
 *
 * Its word is never written: it is the place where the waiters stand. Giving up the lock and starting to wait are one step
 * with respect to `notify`: the thread is in the line before the lock is free.
 */

const util = require('util')
const describe = require('../describe')
const { TypeError, define, isInteger, load, shield } = require('../intrinsics')
const { agent } = require('../settle')
const { acquire, acquireAsync, deadlock, requireWorker } = require('./acquire')
const notice = require('./notice')
const { becomeView } = require('./shared-words')
const { demandOf, giveBack, isExclusive, isToken, notLocked, notifyHost } = require('./token')
const { abortReason, requireFunction, waitOptions } = require('./wait-options')
const { wordOf } = require('./word-of')

const NO_LIMIT = { timeout: Infinity, signal: undefined }

class Condition {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'Condition')
  }

  wait (token, options) {
    requireWorker('wait', 'waitAsync()')
    const held = requireHeld(token, 'wait')
    return block(wordOf(this), held, waitOptions(options, 'wait', false).timeout, 'wait')
  }

  waitFor (token, predicate, options) {
    requireWorker('waitFor', 'waitForAsync()')
    requireHeld(token, 'waitFor')
    requireFunction(predicate, 'waitFor', 'predicate')
    const word = wordOf(this)
    const left = notice.countdown(waitOptions(options, 'waitFor', false).timeout)
    while (!predicate()) {
      if (!block(word, requireHeld(token, 'waitFor'), left(), 'waitFor')) return !!predicate()
    }
    return true
  }

  async waitAsync (token, options) {
    const held = requireHeld(token, 'waitAsync')
    return await awaitNotice(wordOf(this), held, waitOptions(options, 'waitAsync'), 'waitAsync')
  }

  async waitForAsync (token, predicate, options) {
    requireHeld(token, 'waitForAsync')
    requireFunction(predicate, 'waitForAsync', 'predicate')
    const { timeout, signal } = waitOptions(options, 'waitForAsync')
    const word = wordOf(this)
    const left = notice.countdown(timeout)
    while (!await predicate()) {
      const held = requireHeld(token, 'waitForAsync')
      if (!await awaitNotice(word, held, { timeout: left(), signal }, 'waitForAsync')) return !!await predicate()
    }
    return true
  }

  notify (count = Infinity) {
    if (!(isInteger(count) || count === Infinity) || count < 0) {
      throw new TypeError('notify: count must be an integer from 0 on, or Infinity, not ' + describe(count))
    }
    return notice.notify(wordOf(this), count)
  }

  [util.inspect.custom] (depth, options) {
    return this.constructor.name + ' ' + util.inspect({ waiters: agent().waiterCount(wordOf(this).address) }, options)
  }
}

shield(Condition, ['buffer', 'byteOffset'])
define(Condition, 'byteLength', 4, true)

/**
 * Waits, blocking. The lock is held again whatever happens.
 * @throws {Error} with code ERR_DEADLOCK if a promise of this thread's would get the lock first, and could not give it up
 */
function block (word, held, timeout, caller) {
  if (timeout === 0) return false
  const { holdings, useNotification, waitGivingBack } = agent()
  if (!isHeld(held)) throw notHeld(caller)
  if (held.word.isAwaited()) throw deadlock(caller, 'awaits the lock')
  const place = holdings.toEnd(placeOf(held))
  try {
    return waitGivingBack(word.address, timeout, place, () => {
      holdings.vacate()
      notifyHost(held.word)
    }) === 'ok'
  } finally {
    if (!isHeld(held)) acquire(held, Infinity, caller)
    useNotification()
  }
}

/** Waits, awaiting. The lock is held again whatever happens. */
async function awaitNotice (word, held, wait, caller) {
  if (wait.signal !== undefined && wait.signal.aborted) throw abortReason(wait.signal)
  if (!isHeld(held)) throw notHeld(caller)
  const value = load(word.array, 0)
  try {
    return await notice.waitAsync(word, value, wait, {
      linedUp: () => { giveBack(placeOf(held)) },
      // At once, and not in a later turn of the promises, so that there is no moment at which a thread that ends takes the
      // notification along.
      notified: () => acquireAsync(held, NO_LIMIT, '', word.address).then(() => 'ok')
    }) === 'ok'
  } finally {
    if (!isHeld(held)) await acquireAsync(held, NO_LIMIT, '')
  }
}

/** What the token of a lock stands for that is held exclusively. */
function requireHeld (token, caller) {
  if (!isToken(token)) throw noLock(caller, describe(token))
  const held = demandOf(token)
  if (held === undefined) throw notHeld(caller)
  if (!isExclusive(held)) throw noLock(caller, 'of a share or of permits')
  return held
}

const noLock = (caller, given) =>
  new TypeError(caller + ': token must be the UnlockToken of a lock that is held exclusively, not ' + given)
const notHeld = (caller) => notLocked(caller + ': the token\'s lock is not held')

/** Where what was held is, as it may have moved: without asking the token, which would be a call of whatever is in its place. */
const placeOf = ({ serial, place }) => agent().holdings.placeOf(serial, place)
const isHeld = (held) => placeOf(held) >= 0

module.exports = Condition
