'use strict'

/**
 * `Semaphore`: a number of permits, in four bytes of shared memory.
 *
 * The word holds the permits that are left: none in zero-filled memory, `release` adds them. No waiter is overtaken, so a large
 * `acquire(n)` is not starved. Acquired permits have no owner, since a semaphore is also a signal; those that are held
 * (`hold`, `use`) have a token, and are released when the thread dies.
 */

const { RangeError, TypeError, isInteger, load } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { acquireAsync, acquireOrThrow, requireWorker, runHolding } = require('./held/acquire')
const { MOST, PERMITS, SIGNALS, requestOf } = require('./held/request')
const { runHoldingSync } = require('./held/run-sync')
const { newHold, takeToken } = require('./held/token')
const { becomeView, defineView, newMemory, wordOf } = require('./held/view')

class Semaphore {
  constructor (buffer, options) {
    becomeView(this, arguments.length === 0 ? newMemory() : buffer, options, 'Semaphore')
  }

  /** The number of permits that are left. */
  get available () {
    return load(wordOf(this).array, 0)
  }

  acquire (n = 1, options = undefined) {
    requireWorker('acquire', 'acquireAsync() or use()')
    acquireOrThrow(newHold(wordOf(this), signals(permits(n, 'acquire', 'options'))), options, 'acquire')
  }

  acquireAsync (n = 1, options = undefined) {
    return acquireAsync(this, () => signals(permits(n, 'acquireAsync', 'options')), options, 'acquireAsync')
  }

  tryAcquire (n = 1) {
    const request = signals(permits(n, 'tryAcquire'))
    return wordOf(this).take(request, null)
  }

  release (n = 1) {
    const amount = permits(n, 'release')
    if (wordOf(this).addPermits(amount) === -1) {
      throw new RangeError('release: ' + amount + ' more permits would exceed ' + MOST)
    }
  }

  hold (n = 1, options = undefined) {
    requireWorker('hold', 'holdAsync() or use()')
    return acquireOrThrow(newHold(wordOf(this), held(permits(n, 'hold', 'options'))), options, 'hold')
  }

  holdAsync (n = 1, options = undefined) {
    return acquireAsync(this, () => held(permits(n, 'holdAsync', 'options')), options, 'holdAsync')
  }

  tryHold (n = 1) {
    const request = held(permits(n, 'tryHold'))
    return takeToken(wordOf(this), request)
  }

  use (n, callback, options = undefined) {
    return runHolding(this, () => held(permits(n, 'use', 'callback')), callback, options, 'use')
  }

  useSync (n, callback, options = undefined) {
    requireWorker('useSync', 'use()')
    return runHoldingSync(newHold(wordOf(this), held(permits(n, 'useSync', 'callback'))), callback, options, 'useSync', 'use()')
  }
}

/** Requests permits that have no owner, and so no token. */
const signals = (n) => requestOf(SIGNALS, n)
/** Requests permits that are released when this thread dies. */
const held = (n) => requestOf(PERMITS, n)

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

defineView(Semaphore, ['kind', 'buffer', 'byteOffset'], ({ available, waiters }) => ({ available, waiters }))

module.exports = Semaphore
