'use strict'

/**
 * `Condition`: waiting, while holding a lock, until somebody who holds it has changed something.
 *
 * Its word is never written: it is the place where the waiters stand. Giving up the lock and starting to wait are one step
 * with respect to `notify`: the thread is in the line before the lock is free.
 */

const util = require('util')
const describe = require('../describe')
const { ToIntegerOrInfinity } = require('../abstract-operations')
const { agent } = require('../settle')
const { acquire, acquireAsync, deadlock, requireWorker } = require('./acquire')
const { WORD } = require('./holdings')
const notice = require('./notice')
const sharedWords = require('./shared-words')
const { isExclusive, isToken, notLocked, notifyHost, placeOf } = require('./token')
const { abortReason, requireFunction, waitOptions } = require('./wait-options')

const NO_LIMIT = { timeout: Infinity, signal: undefined }

class Condition {
  constructor (buffer, options) {
    const array = sharedWords(buffer, options, 'Condition')
    this.buffer = buffer
    this.byteOffset = array.byteOffset
    Object.defineProperty(this, WORD, { value: agent().holdings.wordOf(array) })
  }

  wait (token, options) {
    requireWorker('wait', 'waitAsync()')
    requireHeld(token, 'wait')
    return block(this[WORD], token, waitOptions(options, 'wait', false).timeout, 'wait')
  }

  waitFor (token, predicate, options) {
    requireWorker('waitFor', 'waitForAsync()')
    requireHeld(token, 'waitFor')
    requireFunction(predicate, 'waitFor', 'predicate')
    const left = notice.countdown(waitOptions(options, 'waitFor', false).timeout)
    while (!predicate()) {
      if (!block(this[WORD], token, left(), 'waitFor')) return Boolean(predicate())
    }
    return true
  }

  async waitAsync (token, options) {
    requireHeld(token, 'waitAsync')
    return awaitNotice(this[WORD], token, waitOptions(options, 'waitAsync'))
  }

  async waitForAsync (token, predicate, options) {
    requireHeld(token, 'waitForAsync')
    requireFunction(predicate, 'waitForAsync', 'predicate')
    const { timeout, signal } = waitOptions(options, 'waitForAsync')
    const left = notice.countdown(timeout)
    while (!await predicate()) {
      if (!await awaitNotice(this[WORD], token, { timeout: left(), signal })) return Boolean(await predicate())
    }
    return true
  }

  notify (count) {
    return notice.notify(this[WORD], count === undefined ? Infinity : Math.max(0, ToIntegerOrInfinity(count)))
  }

  [util.inspect.custom] (depth, options) {
    return this.constructor.name + ' ' + util.inspect({ waiters: agent().waiterCount(this[WORD].address) }, options)
  }
}

Object.defineProperty(Condition, 'byteLength', { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true })

/**
 * Waits, blocking. The lock is held again whatever happens.
 * @throws {Error} with code ERR_DEADLOCK if a promise of this thread's would get the lock first, and could not give it up
 */
function block (word, token, timeout, caller) {
  if (timeout === 0) return false
  const { holdings, useNotification, waitGivingBack } = agent()
  if (token[WORD].isAwaited()) throw deadlock(caller, 'awaits the lock')
  const place = holdings.toEnd(placeOf(token))
  try {
    return waitGivingBack(word.address, timeout, place, () => {
      holdings.vacate()
      notifyHost(token[WORD])
    }) === 'ok'
  } finally {
    if (!token.locked) acquire(token, Infinity, caller)
    useNotification()
  }
}

/** Waits, awaiting. The lock is held again whatever happens. */
async function awaitNotice (word, token, wait) {
  if (wait.signal !== undefined && wait.signal.aborted) throw abortReason(wait.signal)
  const value = Atomics.load(word.array, 0)
  try {
    return await notice.waitAsync(word, value, wait, {
      linedUp: () => token.unlock(),
      // At once, and not in a later turn of the promises, so that there is no moment at which a thread that ends takes the
      // notification along.
      notified: () => acquireAsync(token, NO_LIMIT, '', word.address).then(() => 'ok')
    }) === 'ok'
  } finally {
    if (!token.locked) await acquireAsync(token, NO_LIMIT, '')
  }
}

function requireHeld (token, caller) {
  if (!isToken(token) || !isExclusive(token)) {
    throw new TypeError(caller + ': token must be the UnlockToken of a lock that is held exclusively, not ' +
      (isToken(token) ? 'of a share or of permits' : describe(token)))
  }
  if (!token.locked) throw notLocked(caller + ': the token\'s lock is not held')
}

module.exports = Condition
