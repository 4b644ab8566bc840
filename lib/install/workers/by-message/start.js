'use strict'

/** The first code of a worker: loads the entries, then runs the worker's own code. It removes its own traces before. */

// `require('module')` takes long: see util/worker-threads.js. A package of few files has no such file to require.
const Module = typeof module.constructor.runMain === 'function' ? module.constructor : require('module')
const threads = require('worker_threads')

// eslint-disable-next-line no-restricted-syntax -- nor can it require this one of ours
const { defineProperty, deleteProperty } = Reflect
const { nextTick } = process
/** As in source.js. A file of its own would take as long to load as this one. */
const STARTED_BY_MESSAGE = 'atomics-waitasync:started-by-message'

function start ({ entries, workerData, name, file, source, isSeparate, text }) {
  threads.workerData = workerData
  // As in util/worker-threads.js.
  if (name !== undefined) {
    defineProperty(require('events'), Symbol.for('atomics-waitasync.thread-name'), { __proto__: null, value: name })
  }
  if (Module.syncBuiltinESMExports) Module.syncBuiltinESMExports()
  // On Node 10 it is the parent's.
  if (source !== undefined && process._eval === text) {
    defineProperty(process, '_eval', { __proto__: null, value: source })
  }
  entries.forEach(load)
  deleteProperty(Module._cache, __filename)
  // In a tick of its own, and bound, so that no error's stack has frames of ours.
  if (isSeparate) {
    const { Script } = require('vm')
    const script = new Script(source, { filename: '[worker eval]' })
    nextTick(script.runInThisContext.bind(script))
  }
  if (file === undefined) return
  deleteProperty(process, 'mainModule')
  process.argv[1] = file
  nextTick(Module.runMain.bind(Module), file)
}

/** Loads an entry; if it fails, the worker runs as without an install. It fails with `--no-addons`, for example. */
function load (entry) {
  try {
    require(entry)
  } catch (error) {
    // Seen on Node 10 only, in a worker that is terminated while it loads: there is no error, and nothing to warn of.
    if (error === null) return
    process.emitWarning('This Worker could not load atomics-waitasync: its Atomics.notify() and the other threads\' ' +
      'cannot wake each other. ' + error.message, { code: 'ATOMICS_WAITASYNC_WORKER' })
  }
}

const { workerData } = threads
if (typeof workerData === 'object' && workerData !== null && workerData[STARTED_BY_MESSAGE]) {
  start(workerData[STARTED_BY_MESSAGE])
}
