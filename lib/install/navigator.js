'use strict'

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place. It does so in this thread, and in the Workers that it
 * starts later. Where there is no `navigator`, it makes one like that of Node 21.
 *
 * Nothing is required in a call: these objects may outlive the module registry of the test file that loaded the entry.
 */

const os = require('os')
const { agent } = require('../agent/find-agent')
const { lazy: { Lock, LockManager, locks }, loadNow } = require('../lazy')
const { defineProperty } = require('../util/intrinsics')
const { MAJOR, globalObject } = require('../util/quirks')
const { isObject } = require('../util/values')
const { Module: { syncBuiltinESMExports }, shared, threads } = require('../util/worker-threads')
const { reach } = require('./workers/reach')

const { getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { hasOwnProperty } = Object.prototype

/** State of all copies in this thread: the latest one's `worker_threads.locks`. */
const state = shared('navigator', () => ({ locks: undefined }))

const PLATFORMS = { darwin: 'MacIntel', linux: 'Linux ' + (os.arch() === 'x64' ? 'x86_64' : os.arch()), win32: 'Win32' }
const LANGUAGES = Object.freeze(['en-US'])

// Without a native library, nothing is put in place.
agent()
loadNow(LockManager)

/** A complete navigator: code that finds one expects all its properties. */
class Navigator {
  get hardwareConcurrency () { return os.cpus().length }
  get language () { return LANGUAGES[0] }
  get languages () { return LANGUAGES }
  get platform () { return PLATFORMS[process.platform] || process.platform }
  get userAgent () { return 'Node.js/' + MAJOR }
}

/** @throws {TypeError} one of them cannot be replaced */
module.exports = function installLocks () {
  const { navigator } = globalObject
  // Through one of another realm, that realm would keep this one.
  if (!isObject(navigator) || isForeign(navigator)) {
    put(globalObject, 'navigator', { value: new Navigator(), writable: true, enumerable: true })
  }
  const get = getterOf(globalObject.navigator)
  put(holderOf(globalObject.navigator), 'locks', { get, set: undefined, enumerable: true })
  put(globalObject, 'LockManager', { value: LockManager, writable: true, enumerable: false })
  put(globalObject, 'Lock', { value: Lock, writable: true, enumerable: false })
  if (threads !== undefined && threads.locks !== undefined) putIntoThreads()
  reach('locks', true)
}

/** Makes the getter of `navigator.locks`. Like that of a browser, it refuses other objects than the navigator. */
function getterOf (navigator) {
  const { get } = getOwnPropertyDescriptor({
    get locks () {
      if (this === navigator || this === globalObject.navigator) return locks
      throw new TypeError('navigator.locks: illegal invocation; this must be the navigator')
    }
  }, 'locks')
  return get
}

/** Replaces `worker_threads.locks`, which is the same object as `navigator.locks`. */
function putIntoThreads () {
  // All realms of the thread share the module: properties that the package has put there from another one stay.
  if (threads.locks === state.locks && isForeign(state.locks)) return
  if (define(threads, 'locks', { value: locks, writable: true, enumerable: true })) {
    state.locks = locks
    syncBuiltinESMExports()
    // In these it has no effect.
    if (process.versions.bun || process.versions.deno) warn('the locks of `import { locks } from "worker_threads"`')
  } else {
    warn('worker_threads.locks')
  }
}

const warn = (what) => process.emitWarning('atomics-waitasync/web-locks: ' + what + ' cannot be replaced: its ' +
  'holders and those of this package\'s locks do not exclude each other', { code: 'ATOMICS_WAITASYNC_LOCKS' })

/** Whether a prototype is some realm's `Object.prototype`. */
const isRoot = (prototype) => hasOwnProperty.call(prototype, 'hasOwnProperty')

/** Whether an object that this realm was given is another's. */
function isForeign (object) {
  let prototype = getPrototypeOf(object)
  while (prototype !== null && !isRoot(prototype)) prototype = getPrototypeOf(prototype)
  return prototype !== null && prototype !== Object.prototype
}

/**
 * Finds the object that gets the property `locks`. That is the prototype, as in browsers, unless the navigator is a
 * plain object or has the property itself.
 */
function holderOf (navigator) {
  const prototype = getPrototypeOf(navigator)
  const isPlain = prototype === null || isRoot(prototype)
  return isPlain || hasOwnProperty.call(navigator, 'locks') ? navigator : prototype
}

const define = (object, name, property) => (
  defineProperty(object, name, Object.assign({ __proto__: null, configurable: true }, property)))

function put (object, name, property) {
  if (!define(object, name, property)) {
    throw new TypeError('atomics-waitasync/web-locks: ' + name + ' cannot be replaced: its object is frozen, or the ' +
      'property is not configurable')
  }
}
