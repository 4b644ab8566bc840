'use strict'

/**
 * `locks`: the Web Locks API, https://w3c.github.io/web-locks/, over lines that all threads of the process share.
 *
 * Invariants:
 * - Arguments are converted, and checked, in the order of the specification, before anything else happens; `request` and `query`
 *   reject instead of throwing.
 * - A grant is released exactly once: after what the callback returned has settled, or when the callback will not run. Only then
 *   is the promise of `request` settled. A grant that was stolen rejects it at once.
 */

const util = require('util')
const { agent } = require('../../agent/agent')
const { Promise, TypeError, bare } = require('../../util/intrinsics')
const { option, requireOptions } = require('../../util/options')
const NODE_VERSION = require('../../util/node-version')
const requireStack = require('../../util/require-stack')
const { describe, isObject, quote } = require('../../util/values')
const { abortReason } = require('../../waiting/errors')
const { LATE, unlessLate } = require('../../waiting/late')
const { milliseconds, requireFunction, requireNoPromise, waitOptions } = require('../../waiting/options')
const { createException } = require('./dom-exception')
const { requireWorker } = require('../held/acquire')
const { acquireAsync, acquireSync, newGrant, query, steal, take } = require('./names')
const locks = require('./manager')

const { pid } = process
const EXCLUSIVE = 'exclusive'
const SHARED = 'shared'
const SYNC_OPTIONS = ['ifAvailable', 'mode', 'timeout', 'signal', 'steal']

// The fields of a Lock.
const NAME = Symbol('name')
const MODE = Symbol('mode')
const OWNER_DIED = Symbol('ownerDied')

/** What a callback is given. It is a description only: what has to be released is the grant, which has no way out of this module. */
class Lock {
  constructor () {
    throw new TypeError('Lock: illegal constructor; locks.request passes a Lock to its callback')
  }

  get name () { return fieldOf(this, NAME) }
  get mode () { return fieldOf(this, MODE) }
  /** Whether the thread of the last exclusive holder ended while it held the name. */
  get ownerDied () { return fieldOf(this, OWNER_DIED) }

  [util.inspect.custom] (depth, options) {
    if (!(NAME in this)) return 'Lock {}'
    const { name, mode, ownerDied } = this
    return 'Lock ' + util.inspect({ name, mode, ownerDied }, options)
  }
}

function fieldOf (lock, field) {
  if (!isObject(lock) || lock[field] === undefined) throw new TypeError('Lock: illegal invocation; this must be a Lock')
  return lock[field]
}

/** Makes a Lock. */
function GrantedLock (name, shared, { ownerDied }) {
  this[NAME] = name
  this[MODE] = shared ? SHARED : EXCLUSIVE
  this[OWNER_DIED] = ownerDied
}
GrantedLock.prototype = Lock.prototype

class LockManager {
  constructor () {
    throw new TypeError('LockManager: illegal constructor; there is one for each thread, locks')
  }

  /** `request(name, [options], callback)`: a promise of what the callback returns. */
  request (name, options) {
    const request = new Request()
    const promise = new Promise((resolve, reject) => {
      request.resolve = resolve
      request.reject = reject
    })
    // The constructor turns a stack overflow in its executor into a rejection.
    if (request.reject === undefined) return promise
    request.promise = promise
    try {
      requireThis(this, 'request')
      read(request, arguments, 'request')
      checkAsync(request)
      if (request.timeout !== Infinity) request.promise = unlessLate(promise, () => request.lateError())
      begin(request)
    } catch (error) {
      request.reject(error)
    }
    return request.promise
  }

  /** `requestSync(name, [options], callback)`: blocks, and returns what the callback returns. */
  requestSync (name, options) {
    requireThis(this, 'requestSync')
    const request = new Request()
    read(request, arguments, 'requestSync')
    requireName(request, 'requestSync')
    requireWorker('requestSync', 'request()')
    return holdSync(request)
  }

  /** What all threads of the process hold and await. */
  async query () {
    requireThis(this, 'query')
    const { held, pending } = query()
    return { held: infosOf(held), pending: infosOf(pending) }
  }
}

/** A call of `request` or `requestSync`: its arguments, and its promise. */
class Request {
  constructor () {
    this.name = ''
    this.shared = false
    this.callback = undefined
    this.ifAvailable = false
    this.steal = false
    this.signal = undefined
    this.timeout = Infinity
    this.promise = this.resolve = this.reject = undefined
    // What it has been granted: a Grant, or null if the name was not available; if it has to be awaited, a promise of that.
    this.grant = this.later = undefined
    // If its time is over, a function that makes the error.
    this.lateError = undefined
  }
}
bare(Request)

function requireThis (value, caller) {
  if (value !== locks) throw new TypeError(caller + ': illegal invocation; this must be the LockManager of the thread, locks')
}

// ——— Arguments ———

/** Converts the arguments as WebIDL does: the name, the options, the callback. */
function read (request, given, caller) {
  if (given.length < 2) {
    throw new TypeError(caller + ': name and callback are required, but there ' + (given.length === 1 ? 'is 1 argument' : 'are 0 arguments'))
  }
  const name = given[0]
  request.name = typeof name === 'string' ? name : `${name}`
  const callback = given[given.length === 2 ? 1 : 2]
  if (given.length > 2) {
    if (caller === 'requestSync') readSyncOptions(request, given[1])
    else readOptions(request, given[1])
  }
  requireFunction(callback, caller)
  request.callback = callback
}

/** The members of a dictionary are read in the order of their names, and unknown ones ignored. */
function readOptions (request, given) {
  const options = dictionary(given, 'request')
  if (options === undefined) return
  request.ifAvailable = Boolean(option(options, 'ifAvailable'))
  request.shared = isShared(option(options, 'mode'), 'request')
  const signal = option(options, 'signal')
  if (signal !== undefined) request.signal = waitOptions({ signal }, 'request').signal
  request.steal = Boolean(option(options, 'steal'))
  request.timeout = timeoutOf(options, 'request')
}

/** No code is written for a standard of `requestSync`: so an option that it does not have is an error. */
function readSyncOptions (request, given) {
  const options = dictionary(given, 'requestSync')
  requireOptions(options, SYNC_OPTIONS, 'requestSync', 3)
  for (const name of ['signal', 'steal']) {
    if (option(options, name) !== undefined) throw new TypeError('requestSync blocks, and has no ' + name + ': use request()')
  }
  request.ifAvailable = Boolean(option(options, 'ifAvailable'))
  request.shared = isShared(option(options, 'mode'), 'requestSync')
  request.timeout = timeoutOf(options, 'requestSync')
  requireNoTimeout(request, 'requestSync')
}

function dictionary (given, caller) {
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw new TypeError(caller + ': options must be an object, not ' + describe(given))
  return given
}

function isShared (mode, caller) {
  if (mode === undefined) return false
  const text = typeof mode === 'string' ? mode : `${mode}`
  if (text !== EXCLUSIVE && text !== SHARED) {
    throw new TypeError(caller + ': options.mode must be "exclusive" or "shared", not ' + describe(mode))
  }
  return text === SHARED
}

const timeoutOf = (options, caller) => milliseconds(option(options, 'timeout', Infinity), caller)

/** The checks of `request`, in the order of its steps. */
function checkAsync (request) {
  requireName(request, 'request')
  const { ifAvailable, shared, signal } = request
  if (request.steal && ifAvailable) throw notSupported('request: steal and ifAvailable exclude each other')
  if (request.steal && shared) throw notSupported('request: with steal, mode must be "exclusive"')
  if (signal !== undefined && (request.steal || ifAvailable)) throw notSupported('request: signal and ' + nowOf(request) + ' exclude each other')
  requireNoTimeout(request, 'request')
  if (signal !== undefined && signal.aborted) throw reasonOf(signal)
}

function requireName ({ name }, caller) {
  if (name[0] === '-') throw notSupported(caller + ': name must not begin with "-", as ' + describe(name) + ' does')
}

/** A request that never waits cannot time out. */
function requireNoTimeout (request, caller) {
  if (request.timeout !== Infinity && (request.steal || request.ifAvailable)) {
    throw notSupported(caller + ': timeout and ' + nowOf(request) + ' exclude each other')
  }
}

const nowOf = (request) => request.steal ? 'steal' : 'ifAvailable'
const notSupported = (message) => createException('NotSupportedError', message)
const stolen = ({ name }) => createException('AbortError', 'The lock named ' + quote(name) + ' was stolen by another request')
const reasonOf = (signal) => signal.reason === undefined ? createException('AbortError', 'The operation was aborted') : abortReason(signal)

// ——— Holding ———

/** Node 10: a stack overflow at the beginning of an async function does not throw, but rejects its promise. */
const REJECTS_OVERFLOWS = NODE_VERSION < 12

/** Takes a name at once, or puts the request into its line. */
function begin (request) {
  if (REJECTS_OVERFLOWS) requireStack()
  const grant = newGrant(request.name, request.shared)
  // Before the name is taken: afterwards there might be no stack for it.
  hold(request)
  if (request.steal ? steal(grant) : take(grant)) request.grant = grant
  else if (request.ifAvailable) request.grant = null
  else enqueue(request, grant)
}

/**
 * Runs the callback, with null if the name was not available, releases the name, and settles the promise. It is called by `request`,
 * also where the name has to be awaited: so the callback runs in the asynchronous context of that call.
 */
async function hold (request) {
  // The caller of `request` returns first.
  await undefined
  const grant = request.later === undefined ? request.grant : await request.later
  // The request has failed.
  if (grant === undefined) return
  try {
    const { callback, signal } = request
    if (signal !== undefined && signal.aborted) throw reasonOf(signal)
    if (grant !== null && grant.isStolen) throw stolen(request)
    let result = callback(grant === null ? null : new GrantedLock(request.name, request.shared, grant))
    // A primitive cannot be a promise, and needs no further turn.
    if (typeof result === 'object' || typeof result === 'function') {
      if (grant !== null) rejectIfStolen(request, grant)
      result = await result
    }
    if (grant === null || grant.release()) request.resolve(result)
    else request.reject(stolen(request))
  } catch (error) {
    if (grant === null || grant.releaseAfterError()) request.reject(error)
    else request.reject(stolen(request))
  }
}

/** Lets the promise reject when this thread hears of a steal, which is in a later turn than `take`. */
function rejectIfStolen (request, grant) {
  grant.onStolen = () => request.reject(stolen(request))
}

/** Puts a request into its line. */
function enqueue (request, grant) {
  // Once it is in its line, a call that fails would leave it there.
  requireStack()
  let resolve
  request.later = new Promise((to) => { resolve = to })
  const granted = () => {
    // A steal may be reported in this turn.
    rejectIfStolen(request, grant)
    resolve(grant)
  }
  const { signal } = request
  // Signals of old Node have no reason.
  const rejected = signal === undefined ? request.reject
    : (error) => request.reject(signal.aborted && signal.reason === undefined ? reasonOf(signal) : error)
  const late = (lateError) => {
    request.lateError = lateError
    request.resolve(LATE)
  }
  const claim = acquireAsync(grant, request, granted, rejected, late)
  if (claim !== undefined) agent().remember(request.promise, claim)
}

function holdSync (request) {
  const { name, shared, ifAvailable, timeout, callback } = request
  // What has been taken must be released.
  requireStack()
  let grant = newGrant(name, shared)
  if (!ifAvailable) acquireSync(grant, timeout, 'requestSync')
  else if (!take(grant)) grant = null
  let result
  let failed = true
  let isStolen
  try {
    result = callback(grant === null ? null : new GrantedLock(name, shared, grant))
    failed = false
  } finally {
    isStolen = grant !== null && !(failed ? grant.releaseAfterError() : grant.release())
  }
  requireNoPromise(result, 'requestSync: callback', 'request()')
  if (isStolen) throw stolen(request)
  return result
}

// ——— Query ———

function infosOf (list) {
  const infos = []
  for (let n = 0; n < list.length; n++) {
    const { name, shared, threadId } = list[n]
    infos[n] = { clientId: pid + '-' + threadId, mode: shared ? SHARED : EXCLUSIVE, name }
  }
  return infos
}

// ——— The classes as WebIDL has them ———

for (const [Class, names] of [[Lock, ['name', 'mode', 'ownerDied']], [LockManager, ['request', 'requestSync', 'query']]]) {
  for (const name of names) Object.defineProperty(Class.prototype, name, { enumerable: true })
  Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: Class.name, configurable: true })
}

module.exports = { Lock, LockManager }
