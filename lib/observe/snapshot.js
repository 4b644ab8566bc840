'use strict'

/** `snapshot()`: the holds, waits and cycles of this process. */

const { agent } = require('../agent/find-agent')
const { TypeError } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { completeEntry, parseList, stackTexts } = require('../waiting/errors')

exports.snapshot = function snapshot () {
  const { binding } = agent().native
  const state = parseList(binding.snapshot, 'snapshot')
  const stackText = stackTexts(binding)
  const { held, waiting, cycles } = state
  for (let n = 0; n < held.length; n++) completeEntry(held[n], stackText)
  for (let n = 0; n < waiting.length; n++) completeEntry(waiting[n], stackText)
  for (let n = 0; n < cycles.length; n++) {
    for (let k = 0; k < cycles[n].length; k++) {
      // Indices: see `write_link` in core/src/observe/rows.rs.
      const link = cycles[n][k]
      link.holds = link.holds < 0 ? waiting[~link.holds] : held[link.holds]
      link.waitsFor = waiting[link.waitsFor]
    }
  }
  return { held, waiting, cycles }
}

/** The codes with which Node-API refuses a value because of its type. */
const MISMATCH = /Expected$|^InvalidArg$/

exports.formatSnapshot = function formatSnapshot (snapshot) {
  let reason = ''
  if (isObject(snapshot)) {
    try {
      return agent().native.binding.formatSnapshot(snapshot)
    } catch (error) {
      if (!isObject(error) || !MISMATCH.test(error.code)) throw error
      reason = ': ' + error.message
    }
  }
  throw new TypeError('formatSnapshot: snapshot must be what snapshot() returns, not ' + describe(snapshot) + reason)
}
