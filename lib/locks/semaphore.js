'use strict'

/**
 * `Semaphore`: a number of permits, in four bytes of shared memory.
 *
 * | made | the word counts the permits that are | zero-filled memory has | more permits come by |
 * |---|---|---|---|
 * | without `permits` | left | none | `release` |
 * | with `permits`, its limit | taken | all | nothing |
 *
 * No waiter is overtaken, so a request for many permits is not starved. Acquired permits have no owner, since a
 * semaphore is also a signal; those that are held (`hold`, `use`) have a token, and are released when the thread dies.
 * The permits of a limit can only be held.
 *
 * A limit belongs to its view, and is sent along with its requests: if views of one word have different limits,
 * each is judged by its own.
 */

const { RangeError, TypeError, isInteger, load, max } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { assertWorker } = require('../waiting/wait-options')
const { acquireAsync, acquireOrThrow } = require('../holding/acquire')
const { runHolding, runHoldingSync } = require('../holding/run')
const { LIMITED, MOST, NO_LIMIT, PERMITS, SIGNALS, requestOf } = require('../holding/request')
const { newHold, takeToken } = require('../holding/hold')
const { wordOf } = require('../holding/view-word')
const { assertWithin, initView, defineView, newMemory, oneWord } = require('../view')

const OPTIONS = ['permits', 'detectReentry', 'byteOffset', 'name']
const SHAPE = oneWord(['permits'], OPTIONS, ({ 0: limit }, detects) => {
  if (limit !== undefined) assertWithin(limit, 'Semaphore: permits', 1, MOST)
  // Without a limit, other code may release more permits.
  else if (detects) throw new TypeError('Semaphore: detectReentry needs permits')
})

class Semaphore {
  constructor (buffer, options) {
    const given = arguments.length === 0 ? newMemory() : buffer
    const { settings: { 0: limit }, word } = initView(this, given, options, 'Semaphore', SHAPE)
    if (limit !== undefined) word.limit = limit
  }

  get available () {
    const { array, limit } = wordOf(this)
    const state = load(array, 0)
    return limit === NO_LIMIT ? state : limit - max(state, 0)
  }

  acquire (n = 1, options = undefined) {
    const word = wordOf(this)
    assertNoLimit(word, 'acquire', 'use hold() or useSync()')
    assertWorker('acquire', 'acquireAsync() or use()')
    acquireOrThrow(newHold(word, signals(n, 'acquire', 'options')), options, 'acquire')
  }

  acquireAsync (n = 1, options = undefined) {
    return acquireAsync(this, (word) => {
      assertNoLimit(word, 'acquireAsync', 'use holdAsync() or use()')
      return signals(n, 'acquireAsync', 'options')
    }, options, 'acquireAsync')
  }

  tryAcquire (n = 1) {
    const word = wordOf(this)
    assertNoLimit(word, 'tryAcquire', 'use tryHold()')
    return word.take(signals(n, 'tryAcquire'), null)
  }

  release (n = 1) {
    const word = wordOf(this)
    assertNoLimit(word, 'release', 'unlock() the token of hold(), or end the callback of use()')
    const amount = permits(n, MOST, 'release')
    if (!word.addPermits(amount)) {
      throw new RangeError('release: ' + amount + ' more permits would exceed ' + MOST)
    }
  }

  hold (n = 1, options = undefined) {
    assertWorker('hold', 'holdAsync() or use()')
    const word = wordOf(this)
    return acquireOrThrow(newHold(word, held(word, n, 'hold', 'options')), options, 'hold')
  }

  holdAsync (n = 1, options = undefined) {
    return acquireAsync(this, (word) => held(word, n, 'holdAsync', 'options'), options, 'holdAsync')
  }

  tryHold (n = 1) {
    const word = wordOf(this)
    return takeToken(word, held(word, n, 'tryHold'))
  }

  use (n, callback, options = undefined) {
    return runHolding(this, (word) => held(word, n, 'use', 'callback'), callback, options, 'use')
  }

  useSync (n, callback, options = undefined) {
    return runHoldingSync(this, (word) => held(word, n, 'useSync', 'callback'), callback, options, 'useSync', 'use()')
  }
}

const signals = (n, caller, next) => requestOf(SIGNALS, permits(n, MOST, caller, next))

function held ({ limit }, n, caller, next) {
  if (limit === NO_LIMIT) return requestOf(PERMITS, permits(n, MOST, caller, next))
  return requestOf(LIMITED, permits(n, limit, caller, next))
}

/** @param {string} [next] the name of the caller's next parameter, for callers that may have forgotten n */
function permits (n, most, caller, next) {
  // First, since to join the texts of messages would cost an acquire a quarter.
  if (isInteger(n) && n >= 1 && n <= most) return n
  if (next !== undefined && isObject(n)) {
    throw new TypeError(caller + ': n must be an integer, not ' + describe(n) + '; for one permit write ' + caller +
      '(1, ' + next + ')')
  }
  return assertWithin(n, caller + ': n', 1, most, most < MOST ? ', the limit of this semaphore' : '')
}

function assertNoLimit ({ limit }, caller, instead) {
  if (limit !== NO_LIMIT) {
    throw new TypeError('a Semaphore with `permits` has no ' + caller + '(): ' + instead)
  }
}

defineView(Semaphore, ['permits'], ({ available, waiters }, { limit }) => (
  limit === NO_LIMIT ? { available, waiters } : { permits: limit, available, waiters }))

module.exports = Semaphore
