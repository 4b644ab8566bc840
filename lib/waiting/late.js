'use strict'

/**
 * Promises that time out. V8 adds the functions that await a promise to the stack of an error only if the error is made in an async
 * function whose promise that is. So a wait that has timed out resolves with LATE, and an async function then makes the error.
 */

const { captureStackTrace } = require('../util/intrinsics')

/** What the promise of a wait resolves with when its time is over. */
const LATE = Symbol('atomics-waitasync.late')

/** A promise of the same value; if that is LATE, it rejects with what `createError` returns. */
async function unlessLate (promise, createError) {
  const outcome = await promise
  if (outcome === LATE) throw hideFrames(createError(), unlessLate)
  return outcome
}

/** The error, without the frames down to `fn`: those of the package say nothing to its users. */
function hideFrames (error, fn) {
  if (captureStackTrace !== undefined) captureStackTrace(error, fn)
  return error
}

module.exports = { LATE, hideFrames, unlessLate }
