'use strict'

/**
 * Loads the native library, once per thread and only when it is needed.
 *
 * Every copy of the package in a process ends up with the same file, the one loaded first, since two files would be two
 * queues (see `src/images.rs`). `require` caches by file, so two copies in one thread also share one `exports` object.
 */

const fs = require('fs')
const path = require('path')
const { candidates, libraryFile, packageName } = require('./target')

function isMissing (error, request) {
  return error.code === 'MODULE_NOT_FOUND' && String(error.message).indexOf(request) !== -1
}

/**
 * Requires the library that was built for this platform: beside the package's code, or in the platform's own package. One that
 * does not load is not the end of it: where both are installed, the one for glibc is found on musl, too.
 */
function requireLibrary () {
  const looked = []
  let failure
  for (const candidate of candidates()) {
    const target = candidate()
    const file = path.join(__dirname, '..', libraryFile(target))
    for (const request of [file, packageName(target)]) {
      if (looked.indexOf(request) !== -1) continue
      looked.push(request)
      // Looking takes less time than the error of a `require` in vain.
      if (request === file && !fs.existsSync(file)) continue
      try {
        return requireWithoutProbe(request)
      } catch (error) {
        if (!isMissing(error, request) && failure === undefined) failure = broken(request, error)
      }
    }
  }
  throw failure || missing(looked)
}

/**
 * napi-rs tries `Reflect.getOwnPropertyDescriptor` on an object with a native getter when it is loaded. That object is
 * collected later, and Node before 16 then touches an environment that has gone (nodejs/node#38492): a worker's end could
 * crash the process. What napi-rs does not find, it does not try; it only serves to describe exceptions that are not errors.
 */
function requireWithoutProbe (request) {
  const { getOwnPropertyDescriptor } = Reflect
  if (parseInt(process.versions.node, 10) >= 17) return require(request)
  Reflect.getOwnPropertyDescriptor = undefined
  try {
    return require(request)
  } finally {
    Reflect.getOwnPropertyDescriptor = getOwnPropertyDescriptor
  }
}

function platform () {
  return process.platform + ' ' + process.arch + ', Node ' + process.version
}

function missing (looked) {
  const error = new Error(
    'atomics-waitasync has no native library for this platform (' + platform() + '). Looked for ' + looked.join(', ') +
    '. Where there is one, it is an optional dependency: install without --omit=optional or --no-optional, and without a lock ' +
    'file that was made on another platform. Otherwise build it with "npm run build" in ' + path.join(__dirname, '..') +
    ' (needs Rust: cargo).')
  error.code = 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY'
  return error
}

function broken (request, cause) {
  const error = new Error(
    'atomics-waitasync found its native library ' + request + ', but it does not load on this platform (' + platform() +
    '): ' + cause.message + '. Build it anew with "npm run build" in ' + path.join(__dirname, '..') + ' (needs Rust: cargo).')
  error.code = 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY'
  error.cause = cause
  return error
}

let binding

/**
 * The native library's exports.
 * @throws {Error} with code ERR_ATOMICS_WAITASYNC_NO_LIBRARY if there is none for this platform
 */
exports.load = function load () {
  if (binding === undefined) {
    const own = requireLibrary()
    const other = own.otherFirstImage()
    binding = other ? requireWithoutProbe(other) : own
  }
  return binding
}
