'use strict'

/**
 * Requires the modules of Node's that our code requires late.
 *
 * Node to 19 makes a promise where one is first required. A hook of async_hooks runs then, and may use the package: it
 * would meet files that are half loaded.
 */
const NAMES = [
  'fs', 'path', 'vm', 'events', 'async_hooks', 'buffer', 'timers', 'util', 'v8', 'diagnostics_channel', 'worker_threads'
]
/** Node 16 to 19 load no `worker_threads` for main's locks. */
const SKIPPED = /^v1[6-9]\./.test(process.version) && !process.chdir.disabled ? 'worker_threads' : undefined

module.exports = function requireBuiltins () {
  for (const name of NAMES) {
    try {
      if (name !== SKIPPED) require(name)
    } catch (_) {
      // This Node has none.
    }
  }
}
