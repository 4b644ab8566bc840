'use strict'

/**
 * The first code of a worker that is reached by message: loads the entry point, removes its own traces, and lets the worker's
 * own code run.
 */

const Module = require('module')
const threads = require('worker_threads')
const STARTED_BY_MESSAGE = require('./mark')

const { defineProperty, deleteProperty } = Reflect

/** Called in front of code that is evaluated; `start` is the call's offset in it. */
module.exports = function beforeEval (entry, start) {
  require(entry)
  deleteProperty(require.cache, __filename)
  const { _eval } = process
  const mark = '/*' + STARTED_BY_MESSAGE + '*/'
  const end = typeof _eval === 'string' ? _eval.indexOf(mark, start) : -1
  // On Node 10 `_eval` is the parent's.
  if (end !== -1) defineProperty(process, '_eval', { value: _eval.slice(0, start) + _eval.slice(end + mark.length) })
}

/** Runs instead of the worker's own file. */
function beforeFile ({ entry, filename, workerData }) {
  threads.workerData = workerData
  if (Module.syncBuiltinESMExports) Module.syncBuiltinESMExports()
  require(entry)
  deleteProperty(require.cache, __filename)
  deleteProperty(process, 'mainModule')
  process.argv[1] = filename
  // In a tick of its own, and bound, so that no error's stack has frames of ours.
  process.nextTick(Module.runMain.bind(Module), filename)
}

const { workerData } = threads
if (typeof workerData === 'object' && workerData !== null && workerData[STARTED_BY_MESSAGE]) beforeFile(workerData)
