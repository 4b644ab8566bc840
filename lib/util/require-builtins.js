'use strict'

/**
 * Requires the modules of Node's that our code requires late.
 *
 * Node to 16 makes a promise where one is first required. A hook of async_hooks runs then, and may use the package: it
 * would meet files that are half loaded.
 */
const NAMES = [
  'fs', 'path', 'vm', 'events', 'async_hooks', 'buffer', 'timers', 'util', 'v8', 'diagnostics_channel', 'worker_threads'
]
/** The main thread of Node 16 loads no `worker_threads` for a lock. */
const SKIPPED = process.version.slice(0, 4) === 'v16.' && !process.chdir.disabled ? 'worker_threads' : undefined

module.exports = function requireBuiltins () {
  for (const name of NAMES) {
    try {
      if (name !== SKIPPED) require(name)
    } catch (_) {
      // This Node has none.
    }
  }
}
