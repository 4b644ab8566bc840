'use strict'

/**
 * Hands what this thread has compiled to the Workers that it starts, as environment data: a Worker that loads the package need not
 * compile it again, which would be a third of the time. Where that fails, Workers compile.
 */

const compiled = require('../../../util/compiled')
const { threads } = require('../../../util/worker-threads')

const { Buffer } = require('buffer')

/** To be called before a Worker is given its environment data. */
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
