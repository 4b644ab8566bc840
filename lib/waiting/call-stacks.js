'use strict'

/** Where calls of the package came from. */

const path = require('path')
const { Error } = require('../util/intrinsics')

/** The package's own frames, and as many as an error has otherwise. */
const FRAMES = 20
/** The folder of the package's code. */
const LIB = path.join(__dirname, '..') + path.sep

/** Where this call came from, as an error: its stack, of at least so many frames, becomes a text when that is read. */
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

/** The frames of an error's stack, from the package's caller on; all of them if the stack has no caller. '' if it cannot be had. */
function stackOf (call) {
  const lines = textOf(call).split('\n')
  let caller = 1
  while (caller < lines.length && isOwn(lines[caller])) caller++
  return lines.slice(caller === lines.length ? 1 : caller).join('\n')
}

/**
 * The same; of a stack that is missing, one warning in the process says so.
 * @param {string} consequence what the warning begins with, with that it is missing
 * @param {string} code that of the warning
 */
function stackOrWarning (binding, call, consequence, code) {
  const text = stackOf(call)
  if (text === '' && binding.tellsOfMissingStack()) {
    process.emitWarning(consequence + '. Error.stackTraceLimit or Error.prepareStackTrace may be the reason', { code })
  }
  return text
}

/** What a program may have replaced makes a text of the stack. */
function textOf (call) {
  try {
    return '' + call.stack
  } catch (_) {
    return ''
  }
}

const isOwn = (line) => line.includes(LIB) || line.includes('new Promise (<anonymous>)')

module.exports = { captureCall, stackOf, stackOrWarning }
