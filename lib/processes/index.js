'use strict'

/** The exports of `atomics-waitasync/processes`. An engine's code is loaded when it is made. */

const { ProcessLocks } = require('./process-locks')

/** Makes the locks of an engine, or of a folder. */
const processLocks = (engine, options) => new ProcessLocks(engine, options)

module.exports = { processLocks }
