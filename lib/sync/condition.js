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
const { acquire, deadlock, reacquire, requireWorker } = require('./acquire')
const { WORD } = require('./holdings')
const notice = require('./notice')
const requireStack = require('./require-stack')
const sharedWords = require('./shared-words')
const Steps = require('./steps')
const { isExclusive, isToken, notLocked, notifyHost, placeOf } = require('./token')
const { abortReason, requireFunction, waitOptions } = require('./wait-options')

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
    while (!isMet(predicate)) {
      if (!block(this[WORD], token, left(), 'waitFor')) return Boolean(isMet(predicate))
    }
    return true
  }

  waitAsync (token, options) {
    const steps = new Steps()
    return steps.of(awaitOnce(this[WORD], token, options, steps))
  }

  waitForAsync (token, predicate, options) {
    const steps = new Steps()
    return steps.of(awaitUntil(this[WORD], token, predicate, options, steps))
  }

  notify (count) {
    return notice.notify(this[WORD], count === undefined ? Infinity : Math.max(0, ToIntegerOrInfinity(count)))
  }

  [util.inspect.custom] (depth, options) {
    return this.constructor.name + ' ' + util.inspect({ waiters: agent().waiterCount(this[WORD].address) }, options)
  }
}

Object.defineProperty(Condition, 'byteLength', { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true })

/** What a predicate says that cannot be awaited. */
function isMet (predicate) {
  const answer = predicate()
  if (isObject(answer) && typeof answer.then === 'function') {
    throw new TypeError('waitFor: predicate must not give a promise, which could not be awaited: use waitForAsync()')
  }
  return answer
}

/**
 * Waits, blocking. The lock is held again whatever happens.
 * @throws {Error} with code ERR_DEADLOCK if a promise of this thread's would get the lock first, and could not give it up; with code
 *   ERR_NOT_LOCKED if the predicate has given it back
 */
function block (word, token, timeout, caller) {
  const given = placeOf(token)
  if (given < 0) throw notHeld(caller)
  if (timeout === 0) return false
  const { holdings, useNotification, waitGivingBack } = agent()
  if (token[WORD].isAwaited()) throw deadlock(caller, 'awaits the lock')
  // Who has given up the lock must come to take it again.
  requireStack()
  const place = holdings.toEnd(given)
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

async function awaitOnce (word, token, options, steps) {
  try {
    requireHeld(token, 'waitAsync')
    return await awaitNotice(word, token, waitOptions(options, 'waitAsync'), steps, 'waitAsync')
  } finally {
    steps.end()
  }
}

async function awaitUntil (word, token, predicate, options, steps) {
  try {
    requireHeld(token, 'waitForAsync')
    requireFunction(predicate, 'waitForAsync', 'predicate')
    const { timeout, signal } = waitOptions(options, 'waitForAsync')
    const left = notice.countdown(timeout)
    while (!await predicate()) {
      if (!await awaitNotice(word, token, { timeout: left(), signal }, steps, 'waitForAsync')) return Boolean(await predicate())
    }
    return true
  } finally {
    steps.end()
  }
}

/**
 * Waits, awaiting. The lock is held again whatever happens, unless the token is given back meanwhile, as happens at the end of the
 * callback that it was for: then nobody would give the lock back, so it is not taken again.
 *
 * @throws {Error} with code ERR_NOT_LOCKED then
 */
async function awaitNotice (word, token, wait, steps, caller) {
  if (wait.signal !== undefined && wait.signal.aborted) throw abortReason(wait.signal)
  if (!token.locked) throw notHeld(caller)
  // Who stands in the line must come to give up the lock.
  requireStack()
  const value = Atomics.load(word.array, 0)
  const { stepsOf } = agent().holdings
  stepsOf.set(token, steps)
  try {
    let outcome
    try {
      outcome = await notice.waitAsync(word, value, wait, steps, {
        waitsFor: 'a Condition',
        giveUpLock: () => token.unlock(),
        // At once, and not in a later turn of the promises, so that there is no moment at which a thread that ends takes the
        // notification along.
        notified: (resolve, reject) => lockNotified(word, token, steps, resolve, reject)
      })
    } catch (reason) {
      await lockAgain(token, steps)
      throw reason
    }
    if (outcome !== 'ok') await lockAgain(token, steps)
    return outcome === 'ok'
  } finally {
    stepsOf.delete(token)
  }
}

/** Takes the lock again, having been notified. The notification goes to another waiter if that is in vain. */
function lockNotified (word, token, steps, resolve, reject) {
  try {
    if (steps.reason !== undefined) throw steps.reason
    reacquire(token, () => resolve('ok'), reject, steps, word)
  } catch (reason) {
    notice.notify(word, 1)
    reject(reason)
  }
}

/** Takes the lock again, not having been notified. */
async function lockAgain (token, steps) {
  if (steps.reason !== undefined) throw steps.reason
  if (!token.locked) await new Promise((resolve, reject) => reacquire(token, resolve, reject, steps))
}

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function'

const notHeld = (caller) => notLocked(caller + ': the token\'s lock is not held')

function requireHeld (token, caller) {
  if (!isToken(token) || !isExclusive(token)) {
    throw new TypeError(caller + ': token must be the UnlockToken of a lock that is held exclusively, not ' +
      (isToken(token) ? 'of a share or of permits' : describe(token)))
  }
  if (!token.locked) throw notHeld(caller)
}

module.exports = Condition
