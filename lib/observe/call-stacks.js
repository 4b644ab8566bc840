'use strict'

/** The stacks of the program's calls of the package. */

const { Error } = require('../util/intrinsics')
const OWN = require('../util/own-folder')
const shared = require('../util/shared')

/** How many frames: the package's own, and as many as errors usually have. */
const FRAMES = 20
/** Where the package's code is: the folders of all copies in this thread. */
const FOLDERS = shared('folders', () => [])
if (!FOLDERS.includes(OWN)) FOLDERS[FOLDERS.length] = OWN
/** Frames of Node's modules, which have no prefix before Node 16; and of built-in functions. */
const NODE = /[( ](?:node:|internal\/|(?:_\w+|async_hooks|domain|events|fs|net|timers|vm)\.js:\d)/
const BUILT_IN = /\(<anonymous>\)/

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

/** Returns the program's frames of a call's stack: not the package's own, nor Node's. '' if there is no stack. */
function stackOf (call) {
  const lines = textOf(call).split('\n').slice(1)
  let isCalled = false
  const others = lines.reverse().filter((line) => {
    if (NODE.test(line)) return false
    // Built-in functions that the package has called.
    isCalled = isOwn(line) || (isCalled && BUILT_IN.test(line))
    return !isCalled
  })
  return lines.length > 0 && others.length === 0 ? '    at no line of the program' : others.reverse().join('\n')
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

/** Whether a frame, or a file, is the package's own. */
function isOwn (text) {
  for (let n = 0; n < FOLDERS.length; n++) if (text.includes(FOLDERS[n])) return true
  return false
}

module.exports = { FRAMES, captureCall, isOwn, stackOf, stackOrWarning }
