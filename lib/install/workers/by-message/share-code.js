'use strict'

/**
 * Hands this thread's compiled code to its Workers, as environment data. Compiling it again would be a third of the
 * time that a Worker takes to load the package. Where that fails, Workers compile.
 */

const compiled = require('../../../util/compiled')
const { threads } = require('../../../util/worker-threads')

const { Buffer } = require('buffer')

/** Shares the code. Called before a Worker is given its environment data. */
module.exports = function shareCode () {
  try {
    while (compiled.length > 0) {
      const { key, script } = compiled.pop()
      const data = script.createCachedData()
      const shared = new SharedArrayBuffer(data.length)
      data.copy(Buffer.from(shared))
      threads.setEnvironmentData(key, shared)
    }
  } catch (_) {
    // Other code has replaced one of these functions, or no stack is left.
  }
}
