'use strict'

/**
 * The arguments of requests for names: converts and checks them.
 *
 * They are converted as WebIDL does it, and checked in the order of the specification.
 * `request` ignores unknown options, as browsers do. The forms that are not the standard's refuse them: no code was
 * written for a standard of these.
 */

const { TypeError } = require('../util/intrinsics')
const { option, assertOptions } = require('../util/options')
const { describe, isObject } = require('../util/values')
const { throwIfAborted } = require('../waiting/errors')
const { assertFunction, milliseconds, waitOptions } = require('../waiting/wait-options')
const { createException } = require('./dom-exception')

const EXCLUSIVE = 'exclusive'
const SHARED = 'shared'

/** Of the forms that refuse unknown options: the names of the options, how many of them it has, its twin. */
const STRICT = {
  __proto__: null,
  requestSync: {
    known: ['ifAvailable', 'mode', 'repair', 'timeout', 'signal', 'steal'], offered: 4, twin: 'request()'
  },
  hold: { known: ['mode', 'timeout', 'signal', 'steal'], offered: 2, twin: 'holdAsync()' },
  holdAsync: { known: ['mode', 'signal', 'steal', 'timeout'], offered: 4, twin: undefined },
  tryHold: { known: ['mode'], offered: 1, twin: undefined }
}

/** Reads the arguments of a form with a callback: the name, the options, the callback. */
function read (call, given, caller) {
  if (given.length < 2) throw missing(caller + ': name and callback are required', given)
  call.name = text(given[0])
  const callback = given[given.length === 2 ? 1 : 2]
  if (given.length > 2 && given[1] !== undefined && given[1] !== null) readOptions(call, given[1], caller)
  assertFunction(callback, caller)
  call.callback = callback
}

/** Reads the arguments of a form that gives a token: the name and the options. */
function readOfHold (call, given, caller) {
  if (given.length < 1) throw missing(caller + ': name is required', given)
  call.name = text(given[0])
  const options = given[1]
  if (options === undefined || options === null) return
  if (!isObject(options)) throw notObject(options, caller)
  assertStrictly(options, caller)
  call.shared = isShared(option(options, 'mode'), caller)
  if (caller === 'tryHold') return
  if (caller === 'holdAsync') readSignalAndSteal(call, options, caller)
  call.timeout = milliseconds(option(options, 'timeout', Infinity), caller)
}

/** Reads the members of a dictionary in the order of their names. */
function readOptions (call, options, caller) {
  if (!isObject(options)) throw notObject(options, caller)
  if (caller === 'requestSync') assertStrictly(options, caller)
  call.ifAvailable = !!option(options, 'ifAvailable')
  call.shared = isShared(option(options, 'mode'), caller)
  const repair = option(options, 'repair')
  if (repair !== undefined) assertFunction(repair, caller, 'repair')
  call.repair = repair
  readSignalAndSteal(call, options, caller)
  call.timeout = milliseconds(option(options, 'timeout', Infinity), caller)
}

function readSignalAndSteal (call, options, caller) {
  const signal = option(options, 'signal')
  if (signal !== undefined) call.signal = waitOptions({ signal }, caller).signal
  call.steal = !!option(options, 'steal')
}

/** Refuses unknown options, and those that a blocking form cannot have. */
function assertStrictly (options, caller) {
  const { known, offered, twin } = STRICT[caller]
  // A function has options, too.
  if (typeof options === 'object') assertOptions(options, known, caller, offered)
  if (twin === undefined) return
  for (let n = offered; n < known.length; n++) {
    if (option(options, known[n]) === undefined) continue
    throw new TypeError(caller + ' blocks, and has no ' + known[n] + ': use ' + twin)
  }
}

function isShared (mode, caller) {
  if (mode === undefined) return false
  const wanted = text(mode)
  if (wanted !== EXCLUSIVE && wanted !== SHARED) {
    throw new TypeError(caller + ': options.mode must be "exclusive" or "shared", not ' + describe(mode))
  }
  return wanted === SHARED
}

/** Converts a value to a string, as WebIDL does. */
const text = (value) => typeof value === 'string' ? value : `${value}`

function missing (message, { length }) {
  return new TypeError(message + ', but there ' + (length === 1 ? 'is 1 argument' : 'are 0 arguments'))
}

const notObject = (options, caller) => (
  new TypeError(caller + ': options must be an object, not ' + describe(options)))

/** Checks the arguments of `request` or `holdAsync`, in the specified order. */
function checkAsync (call, caller) {
  assertRequestable(call, caller)
  const { ifAvailable, shared, signal } = call
  if (call.steal && ifAvailable) throw notCombined(caller, 'steal', 'ifAvailable')
  if (call.steal && shared) throw notSupported(caller + ': with steal, mode must be "exclusive"')
  if (signal !== undefined && (call.steal || ifAvailable)) throw notCombined(caller, 'signal', nowOf(call))
  assertNoTimeout(call, caller)
  throwIfAborted(signal, reasonOf)
}

function assertRequestable ({ name }, caller) {
  if (name[0] === '-') throw notSupported(caller + ': name must not begin with "-", as ' + describe(name) + ' does')
}

/** Refuses a timeout of a request that never waits. */
function assertNoTimeout (call, caller) {
  if (call.timeout !== Infinity && (call.steal || call.ifAvailable)) {
    throw notCombined(caller, 'timeout', nowOf(call))
  }
}

const nowOf = (call) => call.steal ? 'steal' : 'ifAvailable'
const notSupported = (message) => createException('NotSupportedError', message)
const notCombined = (caller, one, other) => notSupported(caller + ': ' + one + ' and ' + other + ' cannot be combined')

const reasonOf = ({ reason = createException('AbortError', 'The operation was aborted') }) => reason

/** Returns why a wait was aborted. Signals of old Node have no reason, and then `otherwise` is of another class. */
function abortReason (signal, otherwise) {
  try {
    return signal.aborted && signal.reason === undefined ? reasonOf(signal) : otherwise
  } catch (_) {
    // A getter of the signal's throws: its error is the reason.
    return otherwise
  }
}

module.exports = { abortReason, assertNoTimeout, assertRequestable, checkAsync, read, readOfHold, reasonOf }
