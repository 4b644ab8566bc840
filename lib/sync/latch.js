'use strict'

/**
 * `Latch`: waiting until something has happened a number of times, once.
 *
 * The word holds how often it has happened. A thread that dies has counted down what it has.
 */

const util = require('util')
const describe = require('../describe')
const { RangeError, TypeError, compareExchange, define, isInteger, load, max, min, shield } = require('../intrinsics')
const { option } = require('../options')
const { requireWorker } = require('./acquire')
const notice = require('./notice')
const { becomeView } = require('./shared-words')
const Steps = require('./steps')
const { abortReason, timeoutError, waitOptions } = require('./wait-options')
const { wordOf } = require('./word-of')

const OPTIONS = ['count', 'byteOffset']
const MOST = 0x7fffffff
const LATE = 'The latch was not opened'
const OPENING = { waitsFor: 'a Latch' }

class Latch {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'Latch', OPTIONS)
    this.count = times(option(options, 'count'), 'Latch: count', 0)
  }

  /** How often it still has to happen. */
  get remaining () {
    return max(0, this.count - load(wordOf(this).array, 0))
  }

  countDown (n = 1) {
    const word = wordOf(this)
    const amount = times(n, 'countDown: n', 1)
    for (;;) {
      const happened = load(word.array, 0)
      if (happened >= this.count) return
      const next = min(this.count, happened + amount)
      if (next === this.count) notice.rehearseNotify(word)
      if (compareExchange(word.array, 0, happened, next) !== happened) continue
      if (next === this.count) notice.notify(word, Infinity)
      return
    }
  }

  wait (options) {
    requireWorker('wait', 'waitAsync()')
    const { timeout } = waitOptions(options, 'wait', false)
    const word = wordOf(this)
    const left = notice.countdown(timeout)
    for (;;) {
      const happened = load(word.array, 0)
      if (happened >= this.count) return
      if (notice.wait(word, happened, left()) === 'timed-out' && this.remaining > 0) throw timeoutError(LATE, timeout)
    }
  }

  waitAsync (options) {
    const steps = new Steps()
    return steps.of(awaitOpening(this, options, steps))
  }

  [util.inspect.custom] (depth, options) {
    return this.constructor.name + ' ' + util.inspect({ count: this.count, remaining: this.remaining }, options)
  }
}

shield(Latch, ['buffer', 'byteOffset', 'count'])
define(Latch, 'byteLength', 4, true)

async function awaitOpening (latch, options, steps) {
  try {
    const { timeout, signal } = waitOptions(options, 'waitAsync')
    if (signal !== undefined && signal.aborted) throw abortReason(signal)
    const word = wordOf(latch)
    const left = notice.countdown(timeout)
    for (;;) {
      const happened = load(word.array, 0)
      if (happened >= latch.count) return
      const outcome = await notice.waitAsync(word, happened, { timeout: left(), signal }, steps, OPENING)
      if (outcome === 'timed-out' && latch.remaining > 0) throw timeoutError(LATE, timeout)
    }
  } finally {
    steps.end()
  }
}

function times (n, what, least) {
  if (!isInteger(n)) throw new TypeError(what + ' must be an integer, not ' + describe(n))
  if (n < least || n > MOST) throw new RangeError(what + ' must be from ' + least + ' to ' + MOST + ', not ' + describe(n))
  return n
}

module.exports = Latch
