'use strict'

/** `ATOMICS_WAITASYNC_DUMP`: the signal at which native code writes a snapshot to the standard error. */

const { isMainThread } = require('../util/worker-threads')

const CODE = 'ATOMICS_WAITASYNC_DUMP'

/** Has the signal write snapshots, if the variable names one. Otherwise one thread of the process warns. */
module.exports = function armDumps (binding) {
  try {
    const signal = binding.armDumps()
    if (typeof signal !== 'string' || !isMainThread) return
    // Node takes a signal over when it gets its first listener, and gives it up with the last one.
    const armAgain = (name) => { if (name === signal) binding.armDumps() }
    process.on('newListener', armAgain)
    process.on('removeListener', armAgain)
  } catch (error) {
    process.emitWarning(error.message, { code: CODE })
  }
}
