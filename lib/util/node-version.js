'use strict'

/** The major version of the Node that this runs on. */
module.exports = parseInt(process.versions.node, 10)
