'use strict'

/** The folder of this copy's code: frames of files in it are the package's own. */

const path = require('path')

module.exports = path.join(__dirname, '..') + path.sep
