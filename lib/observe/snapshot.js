'use strict'

/** `snapshot()`: the holds, waits and cycles of this process. */

const { agent } = require('../agent/agent')
const { TypeError } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { entryOf, parseList, completeCycle, stackTexts } = require('../holding/snapshot-entries')

/** Makes a link of a cycle, from its two indices: see `write_link` in core/src/observe/snapshot.rs. */
function linkOf ({ held, waiting }, indices) {
  const has = indices[0]
  return { holds: has < 0 ? waiting[~has] : held[has], waitsFor: waiting[indices[1]] }
}

exports.snapshot = function snapshot () {
  const { binding } = agent().native
  const state = parseList(binding.snapshot(), 'snapshot')
  const stackText = stackTexts(binding)
  const { held, waiting, cycles } = state
  for (let n = 0; n < held.length; n++) held[n] = entryOf(held[n], 'taken', stackText)
  for (let n = 0; n < waiting.length; n++) waiting[n] = entryOf(waiting[n], 'called', stackText)
  for (let n = 0; n < cycles.length; n++) {
    const cycle = cycles[n]
    for (let k = 0; k < cycle.length; k++) cycle[k] = linkOf(state, cycle[k])
    completeCycle(cycle)
  }
  return { held, waiting, cycles }
}

/** Whether native code has refused a value because of its type. The codes are those of Node-API. */
function isMismatch (error) {
  switch (isObject(error) && error.code) {
    case 'ArrayExpected': case 'BooleanExpected': case 'InvalidArg':
    case 'NumberExpected': case 'ObjectExpected': case 'StringExpected': return true
    default: return false
  }
}

exports.formatSnapshot = function formatSnapshot (snapshot) {
  let reason = ''
  if (isObject(snapshot)) {
    try {
      return agent().native.binding.formatSnapshot(snapshot)
    } catch (error) {
      if (!isMismatch(error)) throw error
      reason = ': ' + error.message
    }
  }
  throw new TypeError('formatSnapshot: snapshot must be what snapshot() returns, not ' + describe(snapshot) + reason)
}
