'use strict'

/** This thread's LockManager. Its prototype is that of the class (see index.js); lock-manager.js knows its identity. */
module.exports = {}
