'use strict'

/**
 * Loads the native library, once per thread and only when it is needed.
 *
 * Every copy of the package in a process ends up with the same file, the one loaded first, since two files would be two
 * queues (see `src/images.rs`). `require` caches by file, so two copies in one thread also share one `exports` object.
 */

const fs = require('fs')
const path = require('path')

/** What napi-rs appends to the architecture: the C library on Linux, the compiler's on Windows. */
function abiSuffix () {
  if (process.platform === 'win32') return '-msvc'
  if (process.platform !== 'linux') return ''
  const suffix = isMusl() ? '-musl' : '-gnu'
  return process.arch === 'arm' ? suffix + 'eabihf' : suffix
}

/** Whether Node was built for musl: glibc's version is in the report's header, musl has none; the report is slow but rarely asked for. */
function isMusl () {
  if (fs.existsSync('/etc/alpine-release')) return true
  if (!process.report || typeof process.report.getReport !== 'function') return false
  const report = process.report.getReport()
  const header = (typeof report === 'string' ? JSON.parse(report) : report).header
  return !header.glibcVersionRuntime
}

function isMissing (error, request) {
  return error.code === 'MODULE_NOT_FOUND' && String(error.message).indexOf(request) !== -1
}

/** Requires the library that was built for this platform: beside the package's code, or in the platform's own package. */
function requireLibrary () {
  // glibc first, without asking: almost every Linux has it, and looking it up costs more than loading the library.
  const candidates = process.platform === 'linux' && !fs.existsSync('/etc/alpine-release')
    ? ['-gnu' + (process.arch === 'arm' ? 'eabihf' : ''), null]
    : [null]
  const looked = []
  for (const candidate of candidates) {
    const suffix = candidate === null ? abiSuffix() : candidate
    const target = process.platform + '-' + process.arch + suffix
    const file = path.join(__dirname, '..', 'atomics-waitasync.' + target + '.node')
    const name = 'atomics-waitasync-' + target
    for (const request of [file, name]) {
      if (looked.indexOf(request) !== -1) continue
      looked.push(request)
      try {
        return requireWithoutProbe(request)
      } catch (error) {
        if (!isMissing(error, request)) throw broken(request, error)
      }
    }
  }
  throw missing(looked)
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
    '. Build it with "npm run build" in ' + path.join(__dirname, '..') + ' (needs Rust: cargo).')
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
