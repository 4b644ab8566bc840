'use strict'

/** The flags that this thread's workers would inherit, as they were when the package was loaded: later they are anybody's to change. */
module.exports = { flags: process.execArgv.slice(), NODE_OPTIONS: process.env.NODE_OPTIONS }
