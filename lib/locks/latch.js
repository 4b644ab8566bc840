'use strict'

/**
 * `Latch`: waiting until something has happened a number of times, once.
 *
 * The word holds how often it has happened. A thread's counts stay when it dies.
 */

const { assertStack } = require('../agent/find-agent')
const { compareExchange, load, max, min } = require('../util/intrinsics')
const { throwIfAborted, waitKinds: { LATCH } } = require('../waiting/errors')
const { assertWorker, waitOptions } = require('../waiting/wait-options')
const { Steps } = require('../waiting/waiter')
const { notify, waitUntil, waitUntilAsync } = require('../waiting/notice')
const { MOST } = require('../holding/request')
const { wordOf } = require('../holding/view-word')
const { assertWithin, initView, defineView, oneWord } = require('../view')

const SHAPE = oneWord(['count'], ['count', 'byteOffset', 'name'], ({ 0: count }) => {
  assertWithin(count, 'Latch: count', 0, MOST)
})

class Latch {
  constructor (buffer, options) {
    initView(this, buffer, options, 'Latch', SHAPE)
  }

  get remaining () {
    return max(0, this.count - load(wordOf(this).array, 0))
  }

  countDown (n = 1) {
    const word = wordOf(this)
    assertWithin(n, 'countDown: n', 1, MOST)
    for (;;) {
      const happened = load(word.array, 0)
      if (happened >= this.count) return
      const next = min(this.count, happened + n)
      if (next === this.count) assertStack()
      if (compareExchange(word.array, 0, happened, next) !== happened) continue
      if (next === this.count) notify(word, Infinity)
      return
    }
  }

  wait (options) {
    assertWorker('wait', 'waitAsync()')
    const { timeout } = waitOptions(options, 'wait', false)
    waitUntil(wordOf(this), (happened) => happened >= this.count, timeout, LATCH)
  }

  waitAsync (options) {
    const steps = new Steps()
    return steps.of(awaitOpening(this, options, steps))
  }
}

async function awaitOpening (latch, options, steps) {
  assertStack()
  const wait = waitOptions(options, 'waitAsync')
  throwIfAborted(wait.signal)
  await waitUntilAsync(wordOf(latch), (happened) => happened >= latch.count, wait, steps, LATCH, awaitOpening)
}

defineView(Latch, ['count'], ({ count, remaining }) => ({ count, remaining }))

module.exports = Latch
