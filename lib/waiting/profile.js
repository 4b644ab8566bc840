'use strict'

/**
 * Records how long this thread waits, by the stacks of the waiting calls, if `ATOMICS_WAITASYNC_PROFILE` is set (`native.profiles`).
 * src/observe/profile.rs adds up and writes the file.
 *
 * Taking a stack takes longer than many a wait. So a thread spends only a small share of its time on that, and each of the waits that are
 * recorded stands for `factor` waits. A thread that blocks takes the stack once its wait is over, so that it joins the line as soon as without. If it sleeps for
 * longer than its first slice, it is recorded in any case, and then: so a thread that waits for ever is, too. Of a promise, only the call that
 * makes it knows the stack.
 */

const { agent } = require('../agent/agent')
const { bare, now } = require('../util/intrinsics')
const { captureCall, stackOrWarning } = require('./call-stacks')

const { floor, random } = Math
const CODE = 'ATOMICS_WAITASYNC_PROFILE'

/** After so many stacks a thread looks which share of the time since then they took: with more, or less, it records fewer waits, or more. */
const ROUND = 32
const MOST = 0.01
const LEAST = 0.0025

/** Chooses the waits that are recorded. */
class Sampler {
  constructor () {
    this.factor = 1
    this.skips = 0
    this.count = 0
    this.began = now()
    // Milliseconds.
    this.spent = 0
  }

  /** How many waits this one is recorded for; 0: it is not recorded. */
  next () {
    if (this.skips > 0) {
      this.skips--
      return 0
    }
    if (++this.count === ROUND) this.adapt()
    const { factor } = this
    // In the mean factor - 1. Not the same number each time: a program may have that rhythm, too.
    this.skips = floor(random() * (2 * factor - 1))
    return factor
  }

  adapt () {
    const end = now()
    const share = this.spent / (end - this.began)
    if (share > MOST) this.factor *= 2
    else if (share < LEAST && this.factor > 1) this.factor /= 2
    this.count = 0
    this.began = end
    this.spent = 0
  }
}
bare(Sampler)

const sampler = new Sampler()

/** The stack of the call that the program has made, as the number by which native code knows it. */
function takeStack () {
  const { binding } = agent().native
  const began = now()
  const number = binding.stackNumber(stackOrWarning(binding, captureCall(), CODE + ': the stack of a wait is missing', CODE))
  sampler.spent += now() - began
  return number
}

// ——— Promises ———

const NOT_RECORDED = { factor: 0, stack: 0 }

function takeSample () {
  const factor = sampler.next()
  return factor === 0 ? NOT_RECORDED : { factor, stack: takeStack() }
}

/** Of the steps of a promise all are recorded, or none. To be called first in the call that makes the promise. */
function sampleOf (steps) {
  if (steps.sample === undefined) steps.sample = takeSample()
  return steps.sample
}

/** A promise is about to be enqueued. Returns what `promiseEnds` wants; undefined if it is not recorded. Never throws. */
function promiseBegins (waiter) {
  // The program's own waits may be pauses.
  if (waiter.purpose === 0) return undefined
  try {
    const { factor, stack } = waiter.steps === undefined ? takeSample() : sampleOf(waiter.steps)
    return factor === 0 ? undefined : agent().native.binding.waitBegins(stack, factor, waiter.waitsFor, 0)
  } catch (_) {
    // No stack is left. The wait must begin all the same.
    return undefined
  }
}

/** Its wait is over. Never throws. */
function promiseEnds (number) {
  try {
    agent().native.binding.waitEnds(number)
  } catch (_) {
    // As above.
  }
}

// ——— Threads that block ———

/** The wait for which this thread blocks: there is one at a time. `number` is 0 until it is recorded. */
const blocked = { nounOf: undefined, what: undefined, began: 0, number: 0 }

/** This thread is about to block; `nounOf(what)` says for what. */
function blockBegins (nounOf, what) {
  // The engine may have broken the last one off.
  if (blocked.number !== 0) blockEnds()
  blocked.nounOf = nounOf
  blocked.what = what
  blocked.began = now()
}

function record (factor) {
  const { nounOf, what, began } = blocked
  const milliseconds = now() - began
  return agent().native.binding.waitBegins(takeStack(), factor, nounOf(what), milliseconds)
}

/** Native code calls this between the slices in which the thread sleeps. */
function onSlice () {
  if (blocked.number === 0) blocked.number = record(1)
}

/** What native code is to call between the slices, where it would call `other` otherwise. */
const alongside = (other) => other === undefined ? onSlice : () => {
  onSlice()
  other()
}

/** The thread goes on. Never throws. */
function blockEnds () {
  try {
    let { number } = blocked
    blocked.number = 0
    if (number === 0) {
      const factor = sampler.next()
      if (factor === 0) return
      number = record(factor)
    }
    agent().native.binding.waitEnds(number)
  } catch (_) {
    // As above.
  }
}

module.exports = { alongside, blockBegins, blockEnds, onSlice, promiseBegins, promiseEnds, sampleOf }
