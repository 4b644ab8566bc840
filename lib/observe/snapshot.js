'use strict'

/** `snapshot()`: the holds, waits and cycles of this process. */

const { agent } = require('../agent/find-agent')
const { TypeError, createMap } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { parseList } = require('../waiting/errors')

exports.snapshot = function snapshot () {
  const { binding } = agent().native
  const { held, waiting, cycles } = parseList(binding.snapshot, 'snapshot')
  // By native code's numbers.
  const stacks = createMap()
  complete(held, binding, stacks)
  complete(waiting, binding, stacks)
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

/** Completes entries: those have the numbers of their stacks, if stalls are reported. Each stack is asked for once. */
function complete (entries, binding, stacks) {
  const stackText = (number) => {
    if (!stacks.has(number)) stacks.set(number, binding.stackText(number))
    return stacks.get(number)
  }
  for (let n = 0; n < entries.length; n++) {
    const entry = entries[n]
    if (entry.taken !== undefined) entry.taken = stackText(entry.taken)
    if (entry.called !== undefined) entry.called = stackText(entry.called)
    // It is not known of a promise of `Atomics.waitAsync` itself.
    if (entry.milliseconds === null) entry.milliseconds = NaN
  }
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
