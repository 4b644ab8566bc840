'use strict'

/**
 * Starts the helper of `ATOMICS_WAITASYNC_DUMP_NOW`, which asks threads where they are.
 *
 * A process has one: a Worker of the first thread that loads the package. It must be there before the program hangs. It
 * keeps no program running, gets none of the program's flags and variables, and no install reaches it.
 */

const path = require('path')
const { MAJOR } = require('../../util/quirks')
const { DUMP } = require('../../util/variables')
const { startUnreached } = require('./reach')

const FILE = path.join(__dirname, 'dump-helper-thread.js')
/** Whether the inspector works in a Worker. Older ones abort at the end of a session. */
const HAS_SESSIONS = MAJOR >= 18 && process.versions.bun === undefined && process.versions.deno === undefined

/** Starts it, unless another thread has it. Never throws. */
module.exports = function startDumpHelper (binding) {
  const library = binding.claimDumpHelper()
  if (typeof library !== 'string') return
  try {
    if (!HAS_SESSIONS || !process.features.inspector) throw new Error('it needs Node 18 or newer, with the inspector')
    // Otherwise the session's beginning would abort the process.
    const { permission } = process
    if (permission !== undefined && !permission.has('inspector')) throw new Error('--permission forbids the inspector')
    const options = { argv: [], env: {}, execArgv: [], name: 'atomics-dump', workerData: { library } }
    const worker = startUnreached(FILE, options)
    worker.on('error', (error) => failed(binding, error))
    worker.unref()
  } catch (error) {
    failed(binding, error)
  }
}

function failed (binding, error) {
  binding.dumpHelperFailed()
  process.emitWarning(DUMP + '_NOW has no effect: ' + error.message, { code: DUMP })
}
