'use strict'

/** The stacks of the program's calls of the package. */

const path = require('path')
const { Error } = require('../util/intrinsics')

/** How many frames: the package's own, and as many as errors usually have. */
const FRAMES = 20
/** The folder of the package's code. */
const LIB = path.join(__dirname, '..') + path.sep

/** Captures this call's stack, as an error. It has at least so many frames, and becomes a text when it is read. */
function captureCall (frames = FRAMES) {
  const { stackTraceLimit } = Error
  try {
    if (!(stackTraceLimit >= frames)) Error.stackTraceLimit = frames
  } catch (_) {
    // `Error` is frozen.
  }
  const call = new Error()
  if (Error.stackTraceLimit !== stackTraceLimit) Error.stackTraceLimit = stackTraceLimit
  return call
}

/**
 * Returns the frames of a call's stack, from the package's caller on. All of them if the stack has no caller;
 * '' if there is no stack.
 */
function stackOf (call) {
  const lines = textOf(call).split('\n')
  let caller = 1
  while (caller < lines.length && isOwn(lines[caller])) caller++
  return lines.slice(caller === lines.length ? 1 : caller).join('\n')
}

/**
 * Returns `stackOf(call)`, and warns if that is missing. There is one warning in the process.
 * @param {string} consequence the beginning of the warning: the missing stack, and the consequence
 * @param {string} code the code of the warning
 */
function stackOrWarning (binding, call, consequence, code) {
  const text = stackOf(call)
  if (text === '' && binding.tellsOfMissingStack()) {
    // eslint-disable-next-line own/one-door -- the program's code has just made the text
    process.emitWarning(consequence + '. Error.stackTraceLimit or Error.prepareStackTrace may be the reason', { code })
  }
  return text
}

/** Reads a stack's text, which code of the program may make. */
function textOf (call) {
  try {
    return '' + call.stack
  } catch (_) {
    return ''
  }
}

const isOwn = (line) => line.includes(LIB) || line.includes('new Promise (<anonymous>)')

module.exports = { FRAMES, LIB, captureCall, stackOf, stackOrWarning }
