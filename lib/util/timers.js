'use strict'

/** Timers and the clock as they were at load: a test that replaces them would wait for ever. */

const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = require('timers')
const { now: wallClock } = Date

module.exports = {
  /** The longest time that a timer of Node has, in milliseconds: 24 days. A longer one fires at once. */
  LONGEST_TIMER: 2 ** 31 - 1,
  clearInterval, clearTimeout, setImmediate, setInterval, setTimeout,
  /** Returns the milliseconds since 1970. The clock may be set. */
  wallClock
}
