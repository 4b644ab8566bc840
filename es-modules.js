'use strict'

/**
 * Requires an entry point, for its ES module (index.mjs, …). Bun reads all exports of a CommonJS module that is
 * imported: those of an entry would load the code of every lock.
 */
module.exports = (name) => {
  switch (name) {
    case 'force': return require('./force/index.js')
    case 'keep-alive': return require('./keep-alive/index.js')
    case 'processes': return require('./processes/index.js')
    case 'pure': return require('./pure/index.js')
    case 'web-locks': return require('./web-locks/index.js')
    default: return require('./index.js')
  }
}
