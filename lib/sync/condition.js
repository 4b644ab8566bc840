'use strict'

/**
 * `Condition`: waiting, while holding a lock, until somebody who holds it has changed something.
 *
 * Its word is never written: it is the place where the waiters stand. Giving up the lock and starting to wait are one step
 * with respect to `notify`: the thread is in the line before the lock is free.
 */

const util = require('util')
const { isObject } = require('../abstract-operations')
const describe = require('../describe')
const { Promise, TypeError, define, isInteger, load, shield } = require('../intrinsics')
const { agent } = require('../settle')
const { acquire, deadlock, reacquire, requireWorker } = require('./acquire')
const notice = require('./notice')
const requireStack = require('./require-stack')
const { becomeView } = require('./shared-words')
const Steps = require('./steps')
const { demandOf, giveBack, isExclusive, isToken, notLocked, notifyHost } = require('./token')
const { abortReason, requireFunction, waitOptions } = require('./wait-options')
const { wordOf } = require('./word-of')

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
    while (!isMet(predicate)) {
      if (!block(word, requireHeld(token, 'waitFor'), left(), 'waitFor')) return !!isMet(predicate)
    }
    return true
  }

  waitAsync (token, options) {
    const steps = new Steps()
    return steps.of(awaitOnce(this, token, options, steps))
  }

  waitForAsync (token, predicate, options) {
    const steps = new Steps()
    return steps.of(awaitUntil(this, token, predicate, options, steps))
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
 * @throws {Error} with code ERR_DEADLOCK if a promise of this thread's would get the lock first, and could not give it up
 */
function block (word, held, timeout, caller) {
  if (!isHeld(held)) throw notHeld(caller)
  if (timeout === 0) return false
  const { holdings, useNotification, waitGivingBack } = agent()
  if (held.word.isAwaited()) throw deadlock(caller, 'awaits the lock')
  // A thread that has given up the lock must come to take it again.
  requireStack()
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

async function awaitOnce (condition, token, options, steps) {
  try {
    const held = requireHeld(token, 'waitAsync')
    return await awaitNotice(wordOf(condition), held, waitOptions(options, 'waitAsync'), steps, 'waitAsync')
  } finally {
    steps.end()
  }
}

async function awaitUntil (condition, token, predicate, options, steps) {
  try {
    requireHeld(token, 'waitForAsync')
    requireFunction(predicate, 'waitForAsync', 'predicate')
    const { timeout, signal } = waitOptions(options, 'waitForAsync')
    const word = wordOf(condition)
    const left = notice.countdown(timeout)
    while (!await predicate()) {
      const held = requireHeld(token, 'waitForAsync')
      if (!await awaitNotice(word, held, { timeout: left(), signal }, steps, 'waitForAsync')) return !!await predicate()
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
async function awaitNotice (word, held, wait, steps, caller) {
  if (wait.signal !== undefined && wait.signal.aborted) throw abortReason(wait.signal)
  if (!isHeld(held)) throw notHeld(caller)
  // A thread that stands in the line must come to give up the lock.
  requireStack()
  const value = load(word.array, 0)
  const { stepsOf } = agent().holdings
  stepsOf.set(held.token, steps)
  try {
    let outcome
    try {
      outcome = await notice.waitAsync(word, value, wait, steps, {
        waitsFor: 'a Condition',
        giveUpLock: () => { giveBack(placeOf(held)) },
        // At once, and not in a later turn of the promises, so that there is no moment at which a thread that ends takes the
        // notification along.
        notified: (resolve, reject) => lockNotified(word, held, steps, resolve, reject)
      })
    } catch (reason) {
      await lockAgain(held, steps)
      throw reason
    }
    if (outcome !== 'ok') await lockAgain(held, steps)
    return outcome === 'ok'
  } finally {
    stepsOf.delete(held.token)
  }
}

/** Takes the lock again, having been notified. The notification goes to another waiter if that is in vain. */
function lockNotified (word, held, steps, resolve, reject) {
  try {
    if (steps.reason !== undefined) throw steps.reason
    reacquire(held, () => resolve('ok'), reject, steps, word)
  } catch (reason) {
    notice.notify(word, 1)
    reject(reason)
  }
}

/** Takes the lock again, not having been notified. */
async function lockAgain (held, steps) {
  if (steps.reason !== undefined) throw steps.reason
  if (!isHeld(held)) await new Promise((resolve, reject) => reacquire(held, resolve, reject, steps))
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
