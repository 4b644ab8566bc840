'use strict'

/**
 * `Semaphore`: a number of permits, in four bytes of shared memory.
 *
 * The word holds the permits that are left: none in zero-filled memory, `release` adds them. No waiter is overtaken, so a large
 * `acquire(n)` is not starved. Acquired permits have no owner, since a semaphore is also a signal; those that `use` holds are
 * released when the thread dies.
 */

const { agent } = require('../agent/agent')
const { RangeError, TypeError, isInteger, load } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./internal/acquire')
const { MOST, PERMITS, SIGNALS } = require('./internal/request')
const { newHold } = require('./internal/token')
const { becomeView, defineView, wordOf } = require('./internal/view')

class Semaphore {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'Semaphore')
  }

  /** The number of permits that are left. */
  get available () {
    return load(wordOf(this).array, 0)
  }

  acquire (n = 1, options = undefined) {
    requireWorker('acquire', 'acquireAsync() or use()')
    acquireOrThrow(signals(this, permits(n, 'acquire', 'options')), options, 'acquire')
  }

  acquireAsync (n = 1, options = undefined) {
    return acquireAsync(() => signals(this, permits(n, 'acquireAsync', 'options')), options, 'acquireAsync')
  }

  tryAcquire (n = 1) {
    const amount = permits(n, 'tryAcquire')
    return wordOf(this).take(SIGNALS + 8 * amount) >= 0
  }

  release (n = 1) {
    const amount = permits(n, 'release')
    if (wordOf(this).addPermits(amount) === -1) {
      throw new RangeError('release: ' + amount + ' more permits would be more than ' + MOST)
    }
  }

  use (n, callback, options = undefined) {
    return runHolding(() => newHold(wordOf(this), PERMITS + 8 * permits(n, 'use', 'callback')), callback, options, 'use')
  }
}

/** A hold of permits that have no owner, and so no token. */
const signals = (semaphore, n) => newHold(wordOf(semaphore), SIGNALS + 8 * n, null)

/**
 * A valid number of permits.
 * @param {string} [next] the name of the caller's next parameter, for callers that may have forgotten n
 */
function permits (n, caller, next) {
  if (!isInteger(n)) {
    const forgotten = next !== undefined && isObject(n)
    throw new TypeError(caller + ': n must be an integer, not ' + describe(n) +
      (forgotten ? '; for one permit write ' + caller + '(1, ' + next + ')' : ''))
  }
  if (n < 1 || n > MOST) throw new RangeError(caller + ': n must be from 1 to ' + MOST + ', not ' + describe(n))
  return n
}

defineView(Semaphore, ['buffer', 'byteOffset'], ({ available }, word) => (
  { available, waiters: agent().waiterCount(word.address) }))

module.exports = Semaphore
