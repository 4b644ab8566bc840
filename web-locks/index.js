'use strict'

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place: locks by name for all threads of the
 * process. Does not touch Atomics.
 */
module.exports = require('../lib/entry-point')('web-locks')
