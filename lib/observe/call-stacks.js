'use strict'

/**
 * The program's calls of the package: their stacks, each known to native code by a number.
 *
 * Code of the program may make the texts of stacks (`Error.prepareStackTrace`), and may use locks. So it is called
 * before the package's call does anything. The engine's text is looked up as it is: to find the program's frames in it
 * takes as long again.
 */

const path = require('path')
const { agent } = require('../agent/find-agent')
const { Error, createMap, now } = require('../util/intrinsics')
const { FRAMES_LACK_PREFIX } = require('../util/quirks')
const { shared } = require('../util/worker-threads')
const { STALL } = require('../util/variables')

/** How many of a call that may take long: the package's own, up to thirteen, and a few of the program's. */
const FEW_FRAMES = 17
/** How many stacks a thread recognizes. Beyond that it begins anew. */
const MOST = 2048
/** Taking a stack that has lasted for so many milliseconds was interrupted. */
const LONGEST = 100
const MISSING = 'The stack of a call is missing, so reports do not say where a lock was taken'
const OWN = path.join(__dirname, '..') + path.sep
/** Where the package's code is: the folders of all copies in this thread. */
const FOLDERS = shared('folders', () => [])
if (!FOLDERS.includes(OWN)) FOLDERS[FOLDERS.length] = OWN
/** Frames of Node's modules; and of built-in functions. */
const NODE = FRAMES_LACK_PREFIX
  ? /^ *at (?:async )?(?:.* \()?(?:internal\/|(?:_\w+|async_hooks|domain|events|fs|net|timers|vm)\.js:\d)/
  : /^ *at (?:async )?(?:.* \()?node:/
const BUILT_IN = /\(<anonymous>\)/

/** Makes the text of this call's stack: of at least so many frames. Code of the program may make it. */
function stackHere (frames) {
  const { stackTraceLimit } = Error
  try {
    if (!(stackTraceLimit >= frames)) Error.stackTraceLimit = frames
  } catch (_) {
    // `Error` is frozen.
  }
  const call = new Error()
  if (Error.stackTraceLimit !== stackTraceLimit) Error.stackTraceLimit = stackTraceLimit
  try {
    return '' + call.stack
  } catch (_) {
    return ''
  }
}

/** Returns the program's frames of a stack: not the package's own, nor Node's. '' if there is no stack. */
function programFrames (text) {
  const lines = text.split('\n').slice(1)
  let isCalled = false
  const others = lines.reverse().filter((line) => {
    if (NODE.test(line)) return false
    // Built-in functions that the package has called.
    isCalled = isOwn(line) || (isCalled && BUILT_IN.test(line))
    return !isCalled
  })
  return lines.length > 0 && others.length === 0 ? '    at no line of the program' : others.reverse().join('\n')
}

function isOwn (text) {
  for (let n = 0; n < FOLDERS.length; n++) if (text.includes(FOLDERS[n])) return true
  return false
}

/** Native code's numbers, by the engine's texts; and how many. */
let numbers = createMap()
let count = 0

/**
 * Returns native code's number of this call's stack; 0: there is none. One warning in the process says so. May run a
 * program's code.
 * @param {string} consequence the beginning of the warning: the missing stack, and the consequence
 * @param {string} code the code of the warning
 */
function placeOfCall (frames, consequence, code) {
  const text = stackHere(frames)
  const known = numbers.get(text)
  if (known !== undefined) return known
  const { binding } = agent().native
  const stack = programFrames(text)
  if (stack === '') {
    if (!binding.isFirst('stack')) return 0
    // eslint-disable-next-line own/one-door -- the program's code has just made the text
    process.emitWarning(consequence + '. Error.stackTraceLimit or Error.prepareStackTrace may be the reason', { code })
    return 0
  }
  if (count++ >= MOST) {
    numbers = createMap()
    count = 0
  }
  const number = binding.stackNumber(stack)
  numbers.set(text, number)
  return number
}

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

/** When a stack was begun to be taken; -Infinity once it has been. */
let takingSince = -Infinity

/** Returns native code's number of this call's stack; 0: none. Never throws. */
function placeHere () {
  if (origin !== undefined) return origin.place
  // Code that makes a text of a stack takes a lock. A time limit of `vm` may have interrupted an earlier one.
  const time = now()
  if (time - takingSince < LONGEST) return 0
  takingSince = time
  try {
    return placeOfCall(FEW_FRAMES, MISSING, STALL)
  } catch (_) {
    // No stack is left.
    return 0
  } finally {
    takingSince = -Infinity
  }
}

module.exports = { callFor, originOf, placeHere, placeOfCall }
