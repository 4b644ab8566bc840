'use strict'

/**
 * `Semaphore`: a number of permits, in four bytes of shared memory.
 *
 * The word holds the permits that are left: none in zero-filled memory, `release` adds them. Nobody overtakes, so a large
 * `acquire(n)` is served in its turn. Permits that were acquired belong to nobody, since a semaphore is also a signal; those
 * that `use` holds come back when the thread dies.
 */

const util = require('util')
const describe = require('../describe')
const { RangeError, TypeError, define, isInteger, load, shield } = require('../intrinsics')
const { agent } = require('../settle')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./acquire')
const { PERMITS, SIGNALS } = require('./holdings')
const { becomeView } = require('./shared-words')
const { demand } = require('./token')
const { wordOf } = require('./word-of')

/** The most permits that one call may ask for. */
const MOST = 0x7fffffff
/** What comes after n, in messages. */
const OPTIONS = 'options'
const LATE = 'The permits were not to be had'

class Semaphore {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'Semaphore')
  }

  /** How many permits are left. */
  get available () {
    return load(wordOf(this).array, 0)
  }

  acquire (n = 1, options = undefined) {
    requireWorker('acquire', 'acquireAsync() or use()')
    acquireOrThrow(signals(this, permits(n, 'acquire', OPTIONS)), options, 'acquire', LATE)
  }

  acquireAsync (n = 1, options = undefined) {
    return acquireAsync(() => signals(this, permits(n, 'acquireAsync', OPTIONS)), options, 'acquireAsync', LATE)
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
    return runHolding(() => demand(wordOf(this), PERMITS + 8 * permits(n, 'use', 'callback')), callback, options, 'use', LATE)
  }

  [util.inspect.custom] (depth, options) {
    const { available } = this
    const waiters = agent().waiterCount(wordOf(this).address)
    return this.constructor.name + ' ' + util.inspect({ available, waiters }, options)
  }
}

shield(Semaphore, ['buffer', 'byteOffset'])
define(Semaphore, 'byteLength', 4, true)

/** So many permits, of which nobody becomes the owner: there is no token. */
const signals = (semaphore, n) => demand(wordOf(semaphore), SIGNALS + 8 * n, null)

/**
 * How many permits are meant.
 * @param {string} [next] what the caller's next parameter is called: to be told to who gives that one first
 */
function permits (n, caller, next) {
  if (!isInteger(n)) {
    const forgotten = next !== undefined && n !== null && (typeof n === 'object' || typeof n === 'function')
    throw new TypeError(caller + ': n must be an integer, not ' + describe(n) +
      (forgotten ? '; for one permit write ' + caller + '(1, ' + next + ')' : ''))
  }
  if (n < 1 || n > MOST) throw new RangeError(caller + ': n must be from 1 to ' + MOST + ', not ' + describe(n))
  return n
}

module.exports = Semaphore
