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

module.exports = function requireBuiltins () {
  for (const name of NAMES) {
    try {
      require(name)
    } catch (_) {
      // This Node has none.
    }
  }
}
