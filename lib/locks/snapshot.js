'use strict'

/** `snapshot()`: what is held and awaited in this process by means of this package. */

const { agent } = require('../agent/agent')
const { parse } = require('../util/intrinsics')

exports.snapshot = function snapshot () {
  const { held, waiting } = parse(agent().native.binding.snapshot())
  for (let n = 0; n < waiting.length; n++) {
    // JSON has no NaN.
    if (waiting[n].milliseconds === null) waiting[n].milliseconds = NaN
  }
  return { held, waiting }
}
