'use strict'

/**
 * The arguments of requests for names: converts and checks them. And the errors of the Web Locks API.
 *
 * They are converted as WebIDL does it, and checked in the order of the specification.
 * `request` ignores unknown options, as browsers do. The forms that are not the standard's refuse them: no code was
 * written for a standard of these.
 */

const { globalObject } = require('../util/quirks')
const {
  Error, RangeError, TypeError, append, apply, createArray, define, freeze, sort
} = require('../util/intrinsics')
const { assertOptions, describe, isObject, option } = require('../util/values')
const workerThreads = require('../util/worker-threads')
const { throwIfAborted } = require('../waiting/errors')
const { assertFunction, milliseconds, waitOptions } = require('../waiting/wait-options')

/**
 * A form of requests.
 * - `isOfAll`: whether for several names; `hasCallback`: whether it runs a callback, and does not give a token
 * - `known`, `offered`: the names of the options, and how many of them it has; `request` ignores others
 * - `twin`: of a form that blocks, the one that awaits; `isAttempt`: it never waits
 */
const form = (caller, isOfAll, hasCallback, known, offered, twin, isAttempt = false) => (
  { caller, isOfAll, hasCallback, known, offered, twin, isAttempt })

/** All forms. Those for several names have an error of their own for `steal`. */
const FORMS = [
  form('request', false, true),
  form('requestSync', false, true, ['ifAvailable', 'mode', 'repair', 'timeout', 'signal', 'steal'], 4, 'request()'),
  form('hold', false, false, ['mode', 'timeout', 'signal', 'steal'], 2, 'holdAsync()'),
  form('holdAsync', false, false, ['mode', 'signal', 'steal', 'timeout'], 4),
  form('tryHold', false, false, ['mode'], 1, undefined, true),
  form('requestAll', true, true, ['ifAvailable', 'mode', 'repair', 'signal', 'timeout', 'steal'], 5),
  form('requestAllSync', true, true,
    ['ifAvailable', 'mode', 'repair', 'timeout', 'signal', 'steal'], 4, 'requestAll()'),
  form('holdAll', true, false, ['ifAvailable', 'mode', 'timeout', 'signal', 'steal'], 3, 'holdAllAsync()'),
  form('holdAllAsync', true, false, ['ifAvailable', 'mode', 'signal', 'timeout', 'steal'], 4)
]

/** Reads the arguments of a form: the name or the names, the options, and the callback if it has one. */
function read (call, given, form) {
  const { caller, isOfAll, hasCallback, isAttempt } = form
  if (given.length < (hasCallback ? 2 : 1)) {
    const what = hasCallback ? ' and callback are' : isOfAll ? ' are' : ' is'
    throw new TypeError(caller + (isOfAll ? ': names' : ': name') + what + ' required, but there ' +
      (given.length === 1 ? 'is 1 argument' : 'are 0 arguments'))
  }
  if (isOfAll) call.names = namesOf(given[0], caller)
  else call.name = text(given[0])
  if (!hasCallback || given.length > 2) readOptions(call, given[1], form)
  if (isAttempt) call.ifAvailable = true
  if (!hasCallback) return
  const callback = given[given.length === 2 ? 1 : 2]
  assertFunction(callback, caller)
  call.callback = callback
}

/**
 * Converts an iterable to the list of its names: each once, in the order of their code units. WebIDL would take a
 * string, too, for the list of its characters.
 * @param {(name: unknown) => string} [nameOf] reads a name
 */
function namesOf (value, caller, nameOf = text) {
  const iterate = isObject(value) ? value[Symbol.iterator] : undefined
  if (typeof iterate !== 'function') {
    throw new TypeError(caller + ': names must be an array, or another iterable, of names, not ' + describe(value))
  }
  const all = createArray(0)
  for (const name of { __proto__: null, [Symbol.iterator]: () => apply(iterate, value, []) }) {
    all[all.length] = nameOf(name)
  }
  apply(sort, all, [])
  const names = []
  for (let n = 0; n < all.length; n++) if (n === 0 || all[n] !== all[n - 1]) append(names, all[n])
  return freeze(names)
}

/** Reads the members of a dictionary in the order of their names. There may be none. */
function readOptions (call, options, { caller, isOfAll, hasCallback, known, offered, twin, isAttempt }) {
  if (options === undefined || options === null) return
  if (!isObject(options)) throw new TypeError(caller + ': options must be an object, not ' + describe(options))
  // A function has options, too.
  if (known !== undefined && typeof options === 'object') assertOptions(options, known, caller, offered)
  if (hasCallback || isOfAll) call.ifAvailable = !!option(options, 'ifAvailable')
  call.shared = isShared(option(options, 'mode'), caller)
  if (isAttempt) return
  if (hasCallback) {
    const repair = option(options, 'repair')
    if (repair !== undefined) assertFunction(repair, caller, 'repair')
    call.repair = repair
  }
  const signal = option(options, 'signal')
  if (signal !== undefined) {
    if (twin !== undefined) throw notBlocking(caller, 'signal', twin)
    call.signal = waitOptions({ signal }, caller).signal
  }
  const steal = option(options, 'steal')
  if (steal !== undefined && twin !== undefined && !isOfAll) throw notBlocking(caller, 'steal', twin)
  call.steal = !!steal
  call.timeout = milliseconds(option(options, 'timeout', Infinity), caller)
}

const notBlocking = (caller, name, twin) => new TypeError(caller + ' blocks, and has no ' + name + ': use ' + twin)

function isShared (mode, caller) {
  if (mode === undefined) return false
  const wanted = text(mode)
  if (wanted !== 'exclusive' && wanted !== 'shared') {
    throw new TypeError(caller + ': options.mode must be "exclusive" or "shared", not ' + describe(mode))
  }
  return wanted === 'shared'
}

/** Converts a value to a string, as WebIDL does. */
const text = (value) => typeof value === 'string' ? value : `${value}`

/** Checks the arguments of an asynchronous form, in the specified order. */
function checkAsync (call, caller) {
  assertRequestable(call, caller)
  const { ifAvailable, shared, signal } = call
  if (call.steal && ifAvailable) throw notCombined(caller, 'steal', 'ifAvailable')
  if (call.steal && shared) throw notSupported(caller + ': with steal, mode must be "exclusive"')
  if (signal !== undefined && (call.steal || ifAvailable)) throw notCombined(caller, 'signal', nowOf(call))
  assertNoTimeout(call, caller)
  throwIfAborted(signal, reasonOf)
}

function assertRequestable ({ name, names, steal }, caller) {
  if (names === undefined) {
    assertName(name, caller)
    return
  }
  if (names.length === 0) throw new RangeError(caller + ': names must have at least one name, and has none')
  for (let n = 0; n < names.length; n++) assertName(names[n], caller)
  if (steal) throw notSupported(caller + ': several names cannot be stolen together: steal them one by one')
}

function assertName (name, caller) {
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

/**
 * The class `DOMException`; null where there is none, and undefined until it is needed. Node has it since version 10,
 * and as a global since 17. Before, it is the class of the error that a MessagePort throws.
 */
let DOMException

function findDOMException () {
  if (typeof globalObject.DOMException === 'function') return globalObject.DOMException
  const { threads } = workerThreads
  if (threads === undefined) return null
  const { port1 } = new threads.MessageChannel()
  try {
    port1.postMessage(Symbol('a symbol cannot be cloned'))
  } catch ({ constructor }) {
    if (constructor.name === 'DOMException') return constructor
  } finally {
    port1.close()
  }
  return null
}

/**
 * Makes an error of the Web Locks API: where there is no DOMException, an `Error` with that name.
 * @param {'AbortError' | 'NotSupportedError'} name
 */
function createException (name, message) {
  if (DOMException === undefined) DOMException = findDOMException()
  if (DOMException !== null) return new DOMException(message, name)
  const error = new Error(message)
  define(error, 'name', name, true, true)
  return error
}

module.exports = {
  FORMS, abortReason, assertNoTimeout, assertRequestable, checkAsync, createException, namesOf, read, reasonOf
}
