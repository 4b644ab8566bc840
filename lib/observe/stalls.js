'use strict'

/**
 * Reports waits that last longer than `ATOMICS_WAITASYNC_STALL` milliseconds. A native thread looks for them
 * (core/src/observe/reports.rs has the rules): it writes those of blocked threads to the standard error, and leaves
 * those of promises to the promises' thread, which makes each a warning. Each is a message on the channel
 * `atomics-waitasync:stall`, too: of that thread; of the main thread for a blocked one, which can call no listener.
 */

const { agent } = require('../agent/find-agent')
const { setImmediate } = require('../util/timers')
const { parse } = require('../util/intrinsics')
const { STALL } = require('../util/variables')
const { captureCall, originOf, placeHere, stackOf } = require('./call-stacks')
const { stalled } = require('./channels')
const theList = require('../holding/the-list')

/**
 * Notes this call.
 *
 * - `place`: native code's number of its stack
 * - `within`: the serial numbers of the holds in whose callbacks it is, if that can be known
 */
function callOf () {
  const origin = originOf()
  if (origin !== undefined) return origin
  const { tasks } = theList()
  return { __proto__: null, place: placeHere(), within: tasks === undefined ? undefined : tasks.within() }
}

function keepsHold () {
  const { native: { binding }, tasks } = theList()
  if (tasks !== undefined) binding.taskEnds(tasks.within()[0])
}

/** Lets native code look for long waits. This thread takes its reports. */
function listen (native) {
  const { binding } = native
  binding.reportStalls()
  // That of another copy would keep the realm of that copy.
  if (native.onReports !== undefined) return
  const tellAll = () => {
    for (let json = binding.nextReport(); typeof json === 'string'; json = binding.nextReport()) tell(parse(json))
    agent().door.open()
  }
  // If this thread was busy, grants are delivered first. Node 10 takes two turns for that.
  native.onReports = () => {
    try {
      // eslint-disable-next-line own/one-door -- in a turn of its own
      setImmediate(() => { setImmediate(tellAll) })
    } catch (_) {
      // A program has replaced functions that Node's timers need.
    }
  }
}

/** Publishes a report, as `write` in core/src/observe/reports.rs writes it. One without a slot has been written. */
function tell (report) {
  const { cycle, more, slot, text } = report
  let waiting
  if (slot !== undefined) {
    agent().someWaiter((waiter) => {
      if (waiter.slot === slot) waiting = waiter
      return waiting !== undefined
    })
    // It is over meanwhile. So may be the first of several.
    if (waiting === undefined && more === 0) return
    // The links of a cycle have their places.
    const detail = cycle === undefined && detailOf(report)
    agent().door.note(() => process.emitWarning(text, { code: STALL, ...detail }))
  }
  stalled(report, waiting && waiting.since)
}

/** Makes the property of a warning that says where a call was. */
function detailOf ({ place }) {
  const detail = place === 0 ? undefined : agent().native.binding.stackText(place)
  return typeof detail === 'string' && { detail }
}

/** Makes the text of a thread that blocks for another process. */
const textWhileBlocked = (text) =>
  '(node:' + process.pid + ') [' + STALL + '] Warning: ' + text + '\n' + stackOf(captureCall()) + '\n'

module.exports = { callOf, detailOf, keepsHold, listen, textWhileBlocked }
