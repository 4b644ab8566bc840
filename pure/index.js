'use strict'

/** Exports the functions on the package's own queue and touches no global. */
module.exports = require('../lib/entry-point.js')('pure')
