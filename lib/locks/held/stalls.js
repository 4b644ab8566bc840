'use strict'

/**
 * Reports waits for locks, shares, permits and names that last longer than `ATOMICS_WAITASYNC_STALL` milliseconds, each once.
 *
 * A promise is reported by a warning of its thread, but only the first few one by one in each period of that length. A blocked thread
 * cannot emit a warning before its wait is over, and the main thread may be stuck, too: so a blocked thread writes the same text to the
 * standard error itself, between two slices of its sleep.
 */

const { writeSync } = require('fs')
const { setImmediate, setTimeout } = require('timers')
const { agent } = require('../../agent/agent')
const { bare, createMap, define, max, now } = require('../../util/intrinsics')
const { captureCall, stackOf } = require('../../waiting/call-stacks')
const { robustList } = require('./robust-list')

const CODE = 'ATOMICS_WAITASYNC_STALL'
/** How many promises are reported one by one in each period. */
const MOST = 5

/** A wait that has begun. */
class Wait {
  constructor (hold, call) {
    this.hold = hold
    this.call = call
    this.began = now()
  }

  /** Milliseconds since it began. */
  get age () {
    return now() - this.began
  }
}
bare(Wait)

/** The pending waits that have not been reported, in the order in which they began. */
const waits = createMap()
let isWatched = false

const isOn = () => agent().native.stallAfter !== 0

/**
 * Where this call came from; undefined if no stall will be reported. Its `within` has the serial numbers of the holds in whose callbacks it is,
 * if that can be known.
 */
function callOf () {
  if (!isOn()) return undefined
  const call = captureCall()
  const { tasks } = robustList()
  if (tasks !== undefined) define(call, 'within', tasks.within())
  return call
}

/**
 * A promise begins to wait. Returns what `waitEnds` wants; undefined if no stall will be reported.
 * @param {Error} [call] where the promise came from of which this is a step
 */
function waitBegins (hold, call = callOf()) {
  if (call === undefined) return undefined
  const wait = new Wait(hold, call)
  watch(agent().native.stallAfter)
  waits.set(wait, true)
  return wait
}

/** A wait is over. A second call does nothing. */
function waitEnds (wait) {
  waits.delete(wait)
}

function watch (milliseconds) {
  if (isWatched) return
  // If this thread was busy, what has been granted is delivered first. Node 10 takes two turns for that.
  const turns = () => { setImmediate(() => { setImmediate(check) }) }
  // The check sets the next timer, which would keep the context of the wait that set the first.
  agent().native.inRootContext(() => { setTimeout(turns, milliseconds).unref() })
  isWatched = true
}

/** Reports the promises that have waited too long. */
function check () {
  const after = agent().native.stallAfter
  isWatched = false
  let count = 0
  let oldest
  waits.forEach((_, wait) => {
    // The others are younger.
    if (oldest !== undefined) return
    if (wait.age < after) {
      oldest = wait
      return
    }
    waits.delete(wait)
    if (count++ < MOST) warn(wait)
  })
  if (count > MOST) process.emitWarning((count - MOST) + ' more promises of this thread have been pending for over ' + after + ' ms.', { code: CODE })
  if (oldest !== undefined) watch(count > 0 ? after : max(1, after - oldest.age))
}

function warn (wait) {
  const text = textOf(wait, false)
  if (text !== undefined) process.emitWarning(text, { code: CODE, detail: stackOf(wait.call) })
}

/** A function that native code calls between the slices in which this thread blocks; undefined if no stall will be reported. */
function whileBlocked (hold) {
  if (!isOn()) return undefined
  const wait = new Wait(hold, callOf())
  let isReported = false
  return () => {
    if (isReported || wait.age < agent().native.stallAfter) return
    isReported = true
    const text = textOf(wait, true)
    if (text !== undefined) writeSync(2, '(node:' + process.pid + ') [' + CODE + '] Warning: ' + text + '\n' + stackOf(wait.call) + '\n')
  }
}

const textOf = ({ hold, age }, blocked) => require('./stall-report')(hold, age, blocked)

module.exports = { callOf, waitBegins, waitEnds, whileBlocked }
