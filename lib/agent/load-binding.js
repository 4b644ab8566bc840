'use strict'

/**
 * Finds and loads the native library, once per thread, when first needed.
 *
 * All copies of the package in a process use the same file, the one loaded first: two files would be two queues (see
 * `src/globals/images.rs`). Those in one thread share one `exports` object, also if `require` has forgotten it: loaded
 * anew, the library would make a second agent.
 */

const fs = require('fs')
const path = require('path')
const { GETTERS_CRASH, globalObject } = require('../util/quirks')
const { shared } = require('../util/worker-threads')
const { candidates, libraryFile, packageName } = require('./target')

const { Reflect } = globalObject
const { apply, set } = Reflect

/** The message for a bundled package: how each bundler leaves it out. */
const EXTERNAL = 'atomics-waitasync is in a bundle, but it has a native part and files that Workers load: it must ' +
  'stay external, and be installed beside the bundle. esbuild: external: [\'atomics-waitasync\']; webpack: ' +
  'externals: [/^atomics-waitasync/], externalsType: \'commonjs\'; Rollup: external: [/^atomics-waitasync/]; Vite: ' +
  'ssr: { external: [\'atomics-waitasync\'] }; Next.js: serverExternalPackages: [\'atomics-waitasync\']'

const HOME = path.join(__dirname, '..', '..')

/** Whether the package's own files are missing where its code runs. */
const isBundled = () => !fs.existsSync(path.join(HOME, 'lib', 'install', 'workers', 'by-message', 'start.js'))

function isMissing (error, request) {
  return error.code === 'MODULE_NOT_FOUND' && String(error.message).indexOf(request) !== -1
}

/**
 * Requires the library for this platform: beside the package's code, or from the platform's own package. If one does
 * not load, the next is tried: where both are installed, musl finds the one for glibc first.
 */
function requireLibrary () {
  const tried = []
  let failure
  for (const candidate of candidates()) {
    const target = candidate()
    const file = path.join(HOME, libraryFile(target))
    for (const request of [file, packageName(target)]) {
      if (tried.indexOf(request) !== -1) continue
      tried.push(request)
      try {
        // Checking is faster than a `require` that fails.
        if (request === file && !fs.existsSync(file)) continue
        return withoutProbe(() => require(request))
      } catch (error) {
        if (!isMissing(error, request) && failure === undefined) failure = broken(request, error)
      }
    }
  }
  throw isBundled() ? libraryError(EXTERNAL + '. Looked for ' + tried.join(', ')) : failure || missing(tried)
}

/**
 * Loads the library, but hides `Reflect` from napi-rs on old Nodes. At load, napi-rs probes
 * `Reflect.getOwnPropertyDescriptor` with an object that has a native getter. That object is collected later, and Node
 * before 16 then touches an environment that has ended (nodejs/node#38492): the end of a worker could crash the
 * process. Without the function napi-rs skips the probe, which only helps it to describe exceptions that are no errors.
 * So `Reflect` is another object during the native call, in which no JavaScript runs. It is replaced as a whole,
 * because --frozen-intrinsics does not let its properties be changed.
 */
function withoutProbe (load) {
  if (!GETTERS_CRASH) return load()
  const { dlopen } = process
  // In vain where a program has frozen `process`: then napi-rs probes.
  set(process, 'dlopen', function () {
    set(globalObject, 'Reflect', {})
    try {
      return apply(dlopen, this, arguments)
    } finally {
      set(globalObject, 'Reflect', Reflect)
    }
  })
  try {
    return load()
  } finally {
    set(process, 'dlopen', dlopen)
  }
}

/**
 * Requires the library that another copy of the package has loaded. The `file` may have been removed or replaced since.
 */
function requireFirst (file) {
  let library
  try {
    library = withoutProbe(() => require(file))
  } catch (error) {
    if (!isMissing(error, file)) throw broken(file, error)
    const opened = { exports: {} }
    try {
      withoutProbe(() => process.dlopen(opened, file))
      library = opened.exports
    } catch (_) {
      // Only glibc still knows a loaded library by its path when its file is gone.
    }
  }
  if (library !== undefined && library.otherFirstImage() === null) return library
  throw libraryError('atomics-waitasync was loaded before from ' + file + ', and all copies in a process share one ' +
    'library; but that file has been removed or replaced since. Start the process again.')
}

const platform = () => process.platform + ' ' + process.arch + ', Node ' + process.version

function missing (tried) {
  return libraryError(
    'atomics-waitasync has no native library for this platform (' + platform() + '). Looked for ' + tried.join(', ') +
    '. Prebuilt libraries are optional dependencies: install without --omit=optional or --no-optional, and without a ' +
    'lock file that was made on another platform. Otherwise build it with "npm run build" in ' + HOME +
    ' (needs Rust: cargo).')
}

function broken (request, cause) {
  const error = libraryError(
    'atomics-waitasync found its native library ' + request + ', but it does not load on this platform (' + platform() +
    '): ' + String(cause.message).replace(/\.$/, '') + '. ' + remedy(cause))
  error.cause = cause
  return error
}

function remedy ({ code }) {
  if (code === 'ERR_DLOPEN_DISABLED') {
    return 'It is an addon: leave out --no-addons, and add --allow-addons to --permission.'
  }
  if (code === 'ERR_ACCESS_DENIED') return 'Let Node read it: --allow-fs-read=' + path.join(HOME, '*')
  return 'Rebuild it with "npm run build" in ' + HOME + ' (needs Rust: cargo).'
}

function libraryError (message) {
  return Object.assign(new Error(message), { code: 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY' })
}

// By the number of MARKER in src/globals/images.rs: copies with another one have a library of their own.
const state = shared('library-1', () => ({ binding: undefined }))

/**
 * Loads the native library, and returns its exports.
 * @throws {Error} with code ERR_ATOMICS_WAITASYNC_NO_LIBRARY if there is no library for this platform
 */
function load () {
  if (state.binding === undefined) {
    const own = requireLibrary()
    const other = own.otherFirstImage()
    state.binding = other ? requireFirst(other) : own
  }
  return state.binding
}

/**
 * Runs a function outside of its caller's asynchronous context. Otherwise objects that live as long as the thread would
 * keep the context of the first caller, and settlements would run in it. Other runtimes than Node have no such call.
 */
function inRootContext (run) {
  if (process.versions.bun !== undefined || process.versions.deno !== undefined) run()
  else load().inRootContext(run)
}

module.exports = { EXTERNAL, inRootContext, load }
