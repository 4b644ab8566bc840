'use strict'

/**
 * Reports waits for locks that last longer than `ATOMICS_WAITASYNC_STALL` milliseconds. It does so for locks, shares,
 * permits and names, each wait once. Threads that wait for one another have one report, by the first that finds the
 * ring. src/observe/reports.rs decides which reports there are, and writes their texts.
 *
 * The report of a promise is a warning of its thread, and a message on the channel `atomics-waitasync:stall`. A
 * blocked thread can do neither before its wait is over, and the main thread may be stuck, too. So a native thread
 * writes the text to the standard error, which a blocked thread makes between two slices of its sleep, and the main
 * thread publishes the message when it has a turn.
 */

const { setImmediate, setTimeout } = require('timers')
const { agent } = require('../../agent/agent')
const { Float64Array, createArray, createMap, define, max, now, parse } = require('../../util/intrinsics')
const { captureCall, stackOf } = require('../../waiting/call-stacks')
const { stalled } = require('./diagnostics')
const { theList } = require('../hold/hold')

const CODE = 'ATOMICS_WAITASYNC_STALL'
/** Stands for a slot: this thread blocks. */
const BLOCKS = -1

/** Pending waits of promises, the oldest first: `{ hold, call, began }`. A wait that was reported is not here. */
const waits = createMap()
let isWatched = false

const isOn = () => agent().native.stallAfter !== 0
const ageOf = ({ began }) => now() - began

/**
 * Captures this call's stack; undefined if no stall will be reported. Its `within` has the serial numbers of the holds
 * in whose callbacks it is, if that can be known.
 */
function callOf () {
  if (!isOn()) return undefined
  const call = captureCall()
  const { tasks } = theList()
  if (tasks !== undefined) define(call, 'within', tasks.within())
  return call
}

/**
 * Notes a promise that begins to wait. Returns the argument of `waitEnds`; undefined if no stall will be reported.
 * @param {{ slot: number, since: object | undefined }} hold has the slot while it is enqueued
 * @param {Error} [call] where the promise came from of which this is a step
 */
function waitBegins (hold, call = callOf()) {
  if (call === undefined) return undefined
  const wait = { __proto__: null, hold, call, began: now() }
  watch(agent().native.stallAfter)
  waits.set(wait, true)
  return wait
}

function waitEnds (wait) {
  waits.delete(wait)
}

function watch (milliseconds) {
  if (isWatched) return
  // If this thread was busy, grants are delivered first. Node 10 takes two turns for that.
  // eslint-disable-next-line own/one-door -- in a turn of its own
  const turns = () => { setImmediate(() => { setImmediate(check) }) }
  try {
    // The check sets the next timer, which would keep the context of the wait that set the first.
    // eslint-disable-next-line own/one-door -- before a wait begins, and in a turn of its own
    agent().native.inRootContext(() => { setTimeout(turns, milliseconds).unref() })
    isWatched = true
  } catch (_) {
    // A program has replaced functions that Node's timers need. Locks work all the same.
  }
}

function check () {
  const after = agent().native.stallAfter
  isWatched = false
  const due = createArray(0)
  let oldest
  waits.forEach((_, wait) => {
    // The others are younger.
    if (oldest !== undefined) return
    if (ageOf(wait) < after) {
      oldest = wait
      return
    }
    waits.delete(wait)
    // Otherwise it is not enqueued just now.
    if (wait.hold.slot >= 0) due[due.length] = wait
  })
  if (oldest !== undefined) watch(due.length > 0 ? after : max(1, after - ageOf(oldest)))
  if (due.length > 0) reportAll(due, after)
}

function reportAll (due, after) {
  const asked = new Float64Array(2 * due.length)
  for (let n = 0; n < due.length; n++) {
    lookAtToken(theList(), due[n].hold.word.address)
    asked[2 * n] = due[n].hold.slot
    asked[2 * n + 1] = ageOf(due[n])
  }
  const { more, reports } = reportsOf(asked)
  for (let n = 0; n < reports.length; n++) warn(reports[n], due[reports[n].wait])
  if (more > 0) noteWarning(more + ' more promises of this thread have been pending for over ' + after + ' ms.')
  agent().door.open()
}

function noteWarning (text, detail) {
  agent().door.note(() => process.emitWarning(text, { code: CODE, ...detail }))
}

const reportsOf = (waits) => parse(agent().native.binding.reportStalls(waits))

/** Looks at this thread's token for a word: it may be collected. */
function lookAtToken (list, address) {
  const index = list.find(address)
  if (index >= 0) list.holds.look(list, index)
}

/** Warns of a wait. The links of a ring have their places. */
function warn (report, { call, hold }) {
  const stack = report.cycle === undefined ? stackOf(call) : ''
  noteWarning(report.text, stack !== '' && { detail: stack })
  stalled(report, hold.since)
}

/** Makes a function to call between slices of this thread's sleep. Undefined if no stall will be reported. */
function whileBlocked () {
  if (!isOn()) return undefined
  const began = now()
  let isTold = false
  return () => {
    const age = now() - began
    if (isTold || age < agent().native.stallAfter) return
    isTold = true
    const text = textWhileBlocked(age)
    if (text !== '') agent().native.binding.leaveReport(text)
  }
}

/** Makes the report of a blocked thread. It is empty if another thread has reported the ring that it is on. */
function textWhileBlocked (age) {
  const asked = new Float64Array(2)
  asked[0] = BLOCKS
  asked[1] = age
  const { reports } = reportsOf(asked)
  if (reports.length === 0) return ''
  const { cycle, text } = reports[0]
  const stack = cycle === undefined ? stackOf(captureCall()) + '\n' : ''
  return '(node:' + process.pid + ') [' + CODE + '] Warning: ' + text + '\n' + stack
}

/** Lets this thread publish the reports of blocked threads. Native code calls only the main thread for that. */
function listen () {
  const { native } = agent()
  // That of another copy would keep the realm of that copy.
  if (native.onReports !== undefined) return
  native.onReports = () => {
    for (let json = native.binding.nextReport(); typeof json === 'string'; json = native.binding.nextReport()) {
      const { reports } = parse(json)
      for (let n = 0; n < reports.length; n++) stalled(reports[n])
    }
    agent().door.open()
  }
}

module.exports = { callOf, listen, waitBegins, waitEnds, whileBlocked }
