'use strict'

/** Whether the Node that this runs on is older than `major.minor`. */

const NODE_VERSION = require('./node-version')

const MINOR = parseInt(process.versions.node.split('.')[1], 10)

module.exports = (major, minor) => NODE_VERSION < major || (NODE_VERSION === major && MINOR < minor)
