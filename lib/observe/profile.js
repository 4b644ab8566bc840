'use strict'

/**
 * Records this thread's waits, by the stacks of the waiting calls. It does so if `ATOMICS_WAITASYNC_PROFILE` is set
 * (`native.profiles`). src/observe/profile.rs adds up and writes the file.
 *
 * Each recorded wait stands for `factor` waits (sampler.js). A blocked thread takes the stack once its wait is over, so
 * it joins the line without delay. If it sleeps for longer than its first slice, it is recorded in any case, and at
 * once: so a thread that waits for ever is recorded, too. Of a promise, only the call that makes it knows the stack.
 */

const { agent } = require('../agent/agent')
const { now } = require('../util/intrinsics')
const { PROFILE } = require('../util/variables')
const Sampler = require('./sampler')

const sampler = new Sampler(PROFILE + ': the stack of a wait is missing', PROFILE)

// ——— Promises ———

const NOT_RECORDED = { factor: 0, stack: 0 }

function takeSample () {
  const factor = sampler.next()
  return factor === 0 ? NOT_RECORDED : { factor, stack: sampler.takeStack() }
}

/**
 * Decides once for all steps of a promise whether they are recorded. Called first in the call that makes the promise.
 */
function sampleOf (steps) {
  if (steps.sample === undefined) steps.sample = takeSample()
  return steps.sample
}

/**
 * Records a promise that is about to be enqueued. Returns the argument of `promiseEnds`; undefined if it is
 * not recorded. Never throws.
 */
function promiseBegins (waiter) {
  // The program's own waits may be pauses.
  if (waiter.waitKind === 0) return undefined
  try {
    const { factor, stack } = waiter.steps === undefined ? takeSample() : sampleOf(waiter.steps)
    return factor === 0 ? undefined : agent().native.binding.waitBegins(stack, factor, waiter.waitsFor, 0)
  } catch (_) {
    // No stack is left. The wait must begin all the same.
    return undefined
  }
}

/** Records the end of a promise's wait. Never throws. */
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

/** Notes that this thread is about to block. `nounOf(what)` names the awaited object. */
function blockBegins (nounOf, what) {
  // The engine may have interrupted the last one.
  if (blocked.number !== 0) blockEnds()
  blocked.nounOf = nounOf
  blocked.what = what
  blocked.began = now()
}

function record (factor) {
  const { nounOf, what, began } = blocked
  const milliseconds = now() - began
  return agent().native.binding.waitBegins(sampler.takeStack(), factor, nounOf(what), milliseconds)
}

/** Records a long wait: runs between two slices of the sleep. */
function onSlice () {
  if (blocked.number === 0) blocked.number = record(1)
}

/** Combines `onSlice` with another function to call between slices. */
const alongside = (other) => other === undefined ? onSlice : () => {
  onSlice()
  other()
}

/** Records the end of a blocking wait. Never throws. */
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

// The observer's functions of these names: see attach.js.
module.exports = { alongside, blockBegins, blockEnds, promiseBegins, promiseEnds, sampleOf }
