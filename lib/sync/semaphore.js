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
const { agent } = require('../settle')
const { acquireAsync, acquireOrThrow, rejected, requireWorker, runHolding } = require('./acquire')
const { PERMITS, SIGNALS, WORD } = require('./holdings')
const sharedWords = require('./shared-words')
const { emptyToken } = require('./token')

/** The most permits that one call may ask for. */
const MOST = 0x7fffffff
const LATE = 'The permits were not to be had'

class Semaphore {
  constructor (buffer, options) {
    const array = sharedWords(buffer, options, 'Semaphore')
    this.buffer = buffer
    this.byteOffset = array.byteOffset
    Object.defineProperty(this, WORD, { value: agent().holdings.wordOf(array) })
  }

  /** How many permits are left. */
  get available () {
    return Atomics.load(this[WORD].array, 0)
  }

  acquire (n = 1, options = undefined) {
    requireWorker('acquire', 'acquireAsync() or use()')
    acquireOrThrow(emptyToken(this[WORD], SIGNALS + 8 * permits(n, 'acquire')), options, 'acquire', LATE)
  }

  acquireAsync (n = 1, options = undefined) {
    let token
    try {
      token = emptyToken(this[WORD], SIGNALS + 8 * permits(n, 'acquireAsync'))
    } catch (error) {
      return rejected(error)
    }
    return acquireAsync(token, options, 'acquireAsync', LATE)
  }

  tryAcquire (n = 1) {
    const token = emptyToken(this[WORD], SIGNALS + 8 * permits(n, 'tryAcquire'))
    return token[WORD].take(token)
  }

  release (n = 1) {
    const amount = permits(n, 'release')
    if (this[WORD].addPermits(amount) === -1) {
      throw new RangeError('release: ' + amount + ' more permits would be more than ' + MOST)
    }
  }

  use (n, callback, options = undefined) {
    let token
    try {
      token = emptyToken(this[WORD], PERMITS + 8 * permits(n, 'use'))
    } catch (error) {
      return rejected(error)
    }
    return runHolding(token, callback, options, 'use', LATE)
  }

  [util.inspect.custom] (depth, options) {
    const { available } = this
    const waiters = agent().waiterCount(this[WORD].address)
    return this.constructor.name + ' ' + util.inspect({ available, waiters }, options)
  }
}

Object.defineProperty(Semaphore, 'byteLength', { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true })

function permits (n, caller) {
  if (!Number.isInteger(n)) throw new TypeError(caller + ': n must be an integer, not ' + describe(n))
  if (n < 1 || n > MOST) throw new RangeError(caller + ': n must be from 1 to ' + MOST + ', not ' + describe(n))
  return n
}

module.exports = Semaphore
