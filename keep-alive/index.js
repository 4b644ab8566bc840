'use strict'

/**
 * Makes a pending `waitAsync` of the host keep the process alive. If the host has none, it installs the package's,
 * as the plain entry does.
 */
module.exports = require('../lib/entry-point.js')('keep-alive')
