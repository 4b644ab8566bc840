'use strict'

/**
 * Reports waits that last longer than `ATOMICS_WAITASYNC_STALL` milliseconds: those for locks, shares, permits, names
 * and room in a queue once, and again, when they have lasted twice as long, if their cycle or longest holder is another
 * one; others for a notification, which may be pauses of the program's, once. core/src/observe/reports.rs decides which
 * reports there are, and writes their texts.
 *
 * The report of a promise is a warning of its thread, and a message on the channel `atomics-waitasync:stall`. Native
 * code makes it aside, while this thread goes on. A blocked thread can do neither before its wait is over, and the main
 * thread may be stuck, too. So a native thread writes the text to the standard error, which a blocked thread makes
 * between two slices of its sleep, and the main thread publishes the message when it has a turn.
 */

const { setImmediate, setTimeout } = require('../util/timers')
const { agent } = require('../agent/find-agent')
const { Float64Array, createArray, createMap, max, min, now, parse } = require('../util/intrinsics')
const { STALL } = require('../util/variables')
const { captureCall, originOf, placeHere, stackOf } = require('./call-stacks')
const { stalled } = require('./channels')
const theList = require('../holding/the-list')

/** After how many periods a possible pause is a stall. `PATIENCE` in core/src/observe/reports.rs is the same. */
const PATIENCE = 10
/** How many numbers of a wait native code is given. */
const NUMBERS = 2

/** The pending waits, by themselves. */
const pending = createMap()
let isWatched = false

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

/**
 * Notes a promise that begins to wait. Returns the argument of `waitEnds`.
 * @param {{ slot: number, since: object | undefined }} hold has the slot while it is enqueued
 * @param {object} [call] of `callOf`: where the promise came from of which this is a step
 * @param {boolean} [mayBePause] whether it may last for as long as the program likes
 */
function waitBegins (hold, call = callOf(), mayBePause = false) {
  const { stallAfter } = agent().native
  watch(stallAfter)
  const began = now()
  // `dueAt`: when to ask whether there is a report, or another one.
  const dueAt = began + stallAfter
  const wait = { __proto__: null, hold, call, mayBePause, began, dueAt }
  pending.set(wait, wait)
  return wait
}

const waitEnds = (wait) => { pending.delete(wait) }

/** Calls a function later, in no asynchronous context. */
function callLater (fn, milliseconds) {
  // eslint-disable-next-line own/one-door -- before a wait begins, and in a turn of its own
  agent().native.inRootContext(() => { setTimeout(fn, milliseconds).unref() })
}

function watch (milliseconds) {
  if (isWatched) return
  // If this thread was busy, grants are delivered first. Node 10 takes two turns for that.
  // eslint-disable-next-line own/one-door -- in a turn of its own
  const turns = () => { setImmediate(() => { setImmediate(check) }) }
  try {
    // The check sets the next timer, which would keep the context of the wait that set the first.
    callLater(turns, milliseconds)
    isWatched = true
  } catch (_) {
    // A program has replaced functions that Node's timers need. Locks work all the same.
  }
}

/** Returns when a thread ended last that had used shared memory. */
function lastEnd () {
  const milliseconds = agent().native.binding.sinceLastEnd()
  return typeof milliseconds === 'number' ? now() - milliseconds : -Infinity
}

/** Whether a wait may be a stall, but for its age. One that may be a pause is none as long as no thread has ended. */
const mayStall = (began, age, endedAt) => endedAt > began || age >= PATIENCE * agent().native.stallAfter

/** Asks about the waits that are due. Some may be between two steps, and not enqueued. */
function check () {
  const { answers, binding, stallAfter } = agent().native
  const moment = now()
  const endedAt = lastEnd()
  const due = createArray(0)
  let next = Infinity
  pending.forEach((wait) => {
    const isDue = wait.dueAt <= moment && wait.hold.slot >= 0
    const mayBeDue = isDue && wait.mayBePause && !mayStall(wait.began, moment - wait.began, endedAt)
    if (mayBeDue) wait.dueAt = min(moment + stallAfter, wait.began + PATIENCE * stallAfter)
    if (isDue && !mayBeDue) due[due.length] = wait
    else next = min(next, wait.dueAt)
  })
  if (due.length === 0) {
    isWatched = false
    if (next < Infinity) watch(max(1, min(next - moment, stallAfter)))
    return
  }
  const asked = new Float64Array(NUMBERS * due.length)
  for (let n = 0; n < due.length; n++) {
    asked[NUMBERS * n] = due[n].hold.slot
    asked[NUMBERS * n + 1] = moment - due[n].began
  }
  answers.set(binding.askAboutStalls(asked), (answer) => report(due, moment, answer))
}

/** Publishes the reports, and watches on. A wait is reported again at the earliest when it has lasted twice as long. */
function report (due, moment, { later, more, reports }) {
  const after = agent().native.stallAfter
  for (let n = 0; n < due.length; n++) {
    const age = moment - due[n].began
    const mayBeNone = due[n].mayBePause && age < PATIENCE * after
    due[n].dueAt = moment + (later !== undefined ? min(later, after) : mayBeNone ? after : age)
  }
  for (let n = 0; n < reports.length; n++) {
    const { waits } = reports[n]
    let k = 0
    while (k < waits.length && !pending.has(due[waits[k]])) k++
    if (k < waits.length) warn(reports[n], due[waits[k]])
  }
  if (more > 0) {
    noteWarning(more + ' more promises of this thread have been pending for over ' + after +
      ' ms: reports of them follow.')
  }
  isWatched = false
  watch(max(1, moment + (later === undefined ? after : min(later, after)) - now()))
  agent().door.open()
}

function noteWarning (text, detail) {
  agent().door.note(() => process.emitWarning(text, { code: STALL, ...detail }))
}

/** Makes the property of a warning that says where a call was. */
function detailOf ({ place }) {
  const detail = place === 0 ? undefined : agent().native.binding.stackText(place)
  return typeof detail === 'string' && { detail }
}

/** Warns of a wait. The links of a cycle have their places. */
function warn (report, { call, hold }) {
  noteWarning(report.text, report.cycle === undefined && detailOf(call))
  stalled(report, hold.since)
}

/**
 * Makes a function to call between slices of this thread's sleep.
 * @param {boolean} [mayBePause] as of `waitBegins`
 */
function whileBlocked (mayBePause = false) {
  const began = now()
  const { binding, stallAfter } = agent().native
  let dueAt = stallAfter
  return () => {
    const age = now() - began
    if (age < dueAt) return
    if (mayBePause) {
      dueAt = age < PATIENCE * stallAfter ? min(age + stallAfter, PATIENCE * stallAfter) : Infinity
      if (!mayStall(began, age, lastEnd())) return
    }
    const { later, reports } = parse(binding.reportBlocked(age))
    if (!mayBePause) dueAt = later === undefined ? 2 * age : age + later
    if (reports.length > 0) binding.leaveReport(textWhileBlocked(reports[0]))
  }
}

function textWhileBlocked ({ cycle, text }) {
  const stack = cycle === undefined ? stackOf(captureCall()) + '\n' : ''
  return '(node:' + process.pid + ') [' + STALL + '] Warning: ' + text + '\n' + stack
}

/** Lets this thread take its answers, and the reports of blocked threads. */
function listen (native) {
  // That of another copy would keep the realm of that copy.
  if (native.onReports !== undefined) return
  const answers = native.answers = createMap()
  const next = () => native.binding.nextReports()
  native.onReports = () => {
    for (let json = next(); typeof json === 'string'; json = next()) {
      const answer = parse(json)
      const take = answers.get(answer[0]) || publishAll
      answers.delete(answer[0])
      take(answer[1])
    }
    agent().door.open()
  }
}

function publishAll ({ reports }) {
  for (let n = 0; n < reports.length; n++) stalled(reports[n])
}

module.exports = { callOf, detailOf, keepsHold, listen, textWhileBlocked, waitBegins, waitEnds, whileBlocked }
