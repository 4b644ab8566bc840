'use strict'

/**
 * Records this thread's waits, by the stacks of the waiting calls. It does so if `ATOMICS_WAITASYNC_PROFILE` is set
 * (`native.profiles`). src/observe/profile.rs adds up and writes the file.
 *
 * Taking a stack takes longer than many a wait. So a thread spends only a small share of its time on that, and each
 * recorded wait stands for `factor` waits. It is recorded when it begins: so one that lasts for ever is, too.
 */

const { agent } = require('../agent/find-agent')
const { now } = require('../util/intrinsics')
const { PROFILE } = require('../util/variables')
const { FRAMES, placeOfCall } = require('./call-stacks')

const { floor, random } = Math

// ——— Which waits are recorded ———

/**
 * How many stacks a thread takes between two adaptations. It then compares the share of time that they took with MOST
 * and LEAST, and records fewer, or more.
 */
const ROUND = 32
const MOST = 0.01
const LEAST = 0.0025

/**
 * For how many a recorded wait stands; how many come before the next. Since the last adaptation: how many stacks were
 * taken, from when on, and the milliseconds for them.
 */
const sampling = { factor: 1, skips: 0, count: 0, began: now(), spent: 0 }

/** Decides for how many this wait stands; 0: not recorded. */
function nextFactor () {
  if (sampling.skips > 0) {
    sampling.skips--
    return 0
  }
  if (++sampling.count === ROUND) adapt()
  const { factor } = sampling
  // The mean is factor - 1. The number varies: a program may have a fixed rhythm, too.
  sampling.skips = floor(random() * (2 * factor - 1))
  return factor
}

function adapt () {
  const end = now()
  const share = sampling.spent / (end - sampling.began)
  if (share > MOST) sampling.factor *= 2
  else if (share < LEAST && sampling.factor > 1) sampling.factor /= 2
  sampling.count = 0
  sampling.began = end
  sampling.spent = 0
}

/** Takes the stack of the program's call, and returns its number. Native code knows the stack by that. */
function takeStack () {
  const began = now()
  const number = placeOfCall(FRAMES, PROFILE + ': the stack of a wait is missing', PROFILE)
  sampling.spent += now() - began
  // Those without a stack are a stack, too.
  return number === 0 ? agent().native.binding.stackNumber('') : number
}

// ——— Waits ———

const NOT_RECORDED = { factor: 0, stack: 0 }

/** Decides whether a wait that is about to begin is recorded. May run a program's code. Never throws. */
function sample () {
  try {
    const factor = nextFactor()
    return factor === 0 ? NOT_RECORDED : { factor, stack: takeStack() }
  } catch (_) {
    // No stack is left. The wait must begin all the same.
    return NOT_RECORDED
  }
}

/**
 * Decides once for all steps of a promise whether they are recorded. Called first in the call that makes the promise.
 */
function sampleOf (steps) {
  if (steps.sample === undefined) steps.sample = sample()
  return steps.sample
}

/** Records a wait that begins; `nounOf(what)` says for what. Returns its number, or undefined. Never throws. */
function recordBegins ({ factor, stack }, nounOf, what) {
  if (factor === 0) return undefined
  try {
    return agent().native.binding.waitBegins(stack, factor, nounOf(what))
  } catch (_) {
    // As above.
    return undefined
  }
}

const nounOfWaiter = (waiter) => waiter.waitsFor

/** Records a promise that is about to be enqueued, as `recordBegins`. */
function promiseBegins (waiter) {
  // The program's own waits may be pauses.
  if (waiter.waitKind === 0) return undefined
  return recordBegins(waiter.steps === undefined ? sample() : sampleOf(waiter.steps), nounOfWaiter, waiter)
}

/** Records the end of a wait. Never throws. */
function recordEnds (number) {
  try {
    agent().native.binding.waitEnds(number)
  } catch (_) {
    // As above.
  }
}

// The observer's functions of these names: see attach.js.
module.exports = { promiseBegins, recordBegins, recordEnds, sample, sampleOf }
