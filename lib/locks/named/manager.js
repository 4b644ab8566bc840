'use strict'

/** This thread's LockManager. Its prototype is that of the class (see index.js), and lock-manager.js knows it by its identity. */
module.exports = {}
