'use strict'

/** Installs the package's own `Atomics.wait`, `notify` and `waitAsync` on every host. */
module.exports = require('../lib/entry-point.js')('force')
