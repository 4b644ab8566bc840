'use strict'

/** Runs a callback with a hold that this thread blocks for, and gives the hold back, however the callback ends. */

const { types: { isPromise } } = require('util')
const { requireStack } = require('../../agent/agent')
const { requireFunction, requireNoPromise } = require('../../waiting/options')
const { acquireOrThrow } = require('./acquire')
const { giveBackAfter } = require('./token')

/**
 * Runs `callback(token)`.
 *
 * @param {string} twin the asynchronous form, for messages
 * @throws {TypeError} the callback returned a promise, which a blocked thread cannot await; the hold has been given back
 */
module.exports = function runHoldingSync (hold, callback, options, caller, twin) {
  requireFunction(callback, caller)
  // It must be possible to give back what has been taken.
  requireStack()
  const token = acquireOrThrow(hold, options, caller)
  let result
  let failed = true
  try {
    result = callback(token)
    // What else has a `then` is refused once nothing is held: reading that may run code.
    failed = isPromise(result)
  } finally {
    giveBackAfter(token, failed)
  }
  requireNoPromise(result, caller + ': callback', twin)
  return result
}
