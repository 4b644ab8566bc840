'use strict'

/** Locks and their family, for any mix of threads: what every entry point exports beside the functions of `Atomics`. */
const { AsyncLock, UnlockToken } = require('./async-lock')

module.exports = { AsyncLock, UnlockToken }
