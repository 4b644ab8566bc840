'use strict'

/** `snapshot()`: what is held and awaited in this process by means of this package. */

const { agent } = require('../agent/agent')
const { RangeError, parse } = require('../util/intrinsics')

exports.snapshot = function snapshot () {
  const json = agent().native.binding.snapshot()
  if (typeof json !== 'string') throw new RangeError('snapshot: what is held and awaited has too many entries, or names that are too long, for one string')
  const { held, waiting } = parse(json)
  for (let n = 0; n < waiting.length; n++) {
    // JSON has no NaN.
    if (waiting[n].milliseconds === null) waiting[n].milliseconds = NaN
  }
  return { held, waiting }
}
