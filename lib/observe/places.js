'use strict'

/**
 * The places of the program's calls of the package: their stacks, each known to native code by a number.
 *
 * V8 captures a stack in two or three microseconds, and needs three times as long to make a text of it. So a stack that
 * this thread has met before is recognized by the lines of its frames, and its text is made once. The package's own
 * frames do not count, as in the text.
 *
 * V8 gives frames without a text to `Error.prepareStackTrace` alone, so `identify` is put there for a moment. A time
 * limit of `vm` may interrupt that moment: then `identify` makes the texts of other stacks, as Node does, until the
 * next call of the package puts back what the program had there.
 */

const { agent } = require('../agent/agent')
const { Error, apply, createMap, imul, now } = require('../util/intrinsics')
const { STALL } = require('../util/variables')
const { captureCall, isOwn, stackOrWarning } = require('./call-stacks')

/** How many stacks, and how many names, a thread recognizes. Beyond that it begins anew. */
const MOST = 4096
/** A key has 32 bits of one hash and 21 of another. */
const HALF = 0x200000

const MISSING = 'The stack of a call is missing, so reports do not say where a lock was taken'
/** Frames: the package's own, up to twelve, and a few of the program's. */
const FRAMES = 16
/** Taking a stack that has lasted for so many milliseconds was interrupted. */
const LONGEST = 100

/** Native code's numbers, by the keys of stacks; and how many. */
let places = createMap()
let count = 0
/** Numbers of scripts and functions, by their names; 0: of the package. */
let names = createMap()
let lastName = 0

/** The stack that is to be identified, and its key. */
const asked = { call: undefined, key: 0 }
/** What the program has in the place of `identify`. */
let outer

function forget () {
  names = createMap()
  places = createMap()
  lastName = count = 0
}

function numberOfName (name) {
  const known = names.get(name)
  if (known !== undefined) return known
  if (lastName >= MOST) forget()
  const number = typeof name === 'string' && isOwn(name) ? 0 : ++lastName
  names.set(name, number)
  return number
}

/** Notes the key of the asked stack. It is called by the engine. */
function identify (error, sites) {
  if (error !== asked.call) return textOf(error, sites)
  asked.call = undefined
  let high = 0
  let low = 0
  for (let n = 0; n < sites.length; n++) {
    const site = sites[n]
    let name = site.getScriptNameOrSourceURL()
    if (typeof name !== 'string' || name === '') name = site.isEval() ? site.getEvalOrigin() : ''
    const script = numberOfName(name)
    if (script === 0) continue
    // Not only the position: several scripts may have one name.
    const position = imul(site.getLineNumber() ^ numberOfName(site.getFunctionName()) << 16, 0x10003) ^
      site.getColumnNumber()
    high = imul(imul(high ^ position, 0x9e3779b1) ^ (high >>> 15) ^ script, 0x85ebca6b)
    low = imul(imul(low ^ script, 0xc2b2ae35) ^ (low >>> 13) ^ position, 0x27d4eb2f)
  }
  asked.key = (high >>> 0) * HALF + (low >>> 11)
  return ''
}

function textOf (error, sites) {
  if (typeof outer === 'function') return apply(outer, Error, [error, sites])
  let text = error + ''
  for (let n = 0; n < sites.length; n++) text += '\n    at ' + sites[n]
  return text
}

/**
 * Returns native code's number of this call's stack, of so many frames; 0: there is none. May run a program's code, and
 * warn: see `stackOrWarning`.
 */
function placeOfCall (frames, consequence, code) {
  const isThere = 'prepareStackTrace' in Error
  const { prepareStackTrace, stackTraceLimit } = Error
  if (prepareStackTrace !== identify) outer = prepareStackTrace
  asked.key = 0
  try {
    Error.stackTraceLimit = frames
    // Not by `captureCall`, which would be one more frame: each costs a third of a microsecond.
    const call = asked.call = new Error()
    Error.prepareStackTrace = identify
    // eslint-disable-next-line no-unused-expressions -- the engine calls `identify`
    call.stack
  } catch (_) {
    // `Error` is frozen.
  }
  asked.call = undefined
  if (Error.stackTraceLimit !== stackTraceLimit) Error.stackTraceLimit = stackTraceLimit
  if (Error.prepareStackTrace === identify) {
    if (isThere) Error.prepareStackTrace = outer
    else delete Error.prepareStackTrace
  }
  const { key } = asked
  const known = places.get(key)
  if (known !== undefined) return known
  const { binding } = agent().native
  const text = stackOrWarning(binding, captureCall(frames + 1), consequence, code)
  if (text === '') return 0
  const number = binding.stackNumber(text)
  if (key === 0) return number
  if (count >= MOST) forget()
  count++
  places.set(key, number)
  return number
}

/** When a stack was begun to be taken; -Infinity once it has been. */
let takingSince = -Infinity

/** The program's call for which the package makes others. It is not on their stacks. */
let origin

/** Makes calls for a call of the program, of `callOf`; undefined: it was not noted. */
function callFor (call, fn) {
  const outer = origin
  origin = call
  try {
    return fn()
  } finally {
    origin = outer
  }
}

const originOf = () => origin

/**
 * Returns native code's number of this call's stack; 0: none. One warning in the process says why a stack is missing.
 * Never throws.
 */
function placeHere () {
  if (origin !== undefined) return origin.place
  // Code that makes a text of a stack takes a lock. A time limit of `vm` may have interrupted an earlier one.
  const time = now()
  if (time - takingSince < LONGEST) return 0
  takingSince = time
  try {
    return placeOfCall(FRAMES, MISSING, STALL)
  } catch (_) {
    // No stack is left.
    return 0
  } finally {
    takingSince = -Infinity
  }
}

module.exports = { callFor, originOf, placeHere, placeOfCall }
