'use strict'

/** Locks by name for the threads of several processes and machines. Touches no global. */
const major = parseInt(process.versions.node)
if (major < 16) {
  throw new Error('atomics-waitasync/processes needs Node 16 or newer, and this is ' + process.version)
}

module.exports = require('../lib/entry-point.js').processes()
