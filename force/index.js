'use strict'

/** Installs `Atomics.wait`, `notify` and `waitAsync` on the package's own queue, whatever the host has. */
module.exports = require('../lib/entry.js')('force')
