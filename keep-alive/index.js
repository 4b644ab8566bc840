'use strict'

/** Makes a pending `waitAsync` of the host's own queue keep the process alive. If the host has none, it installs ours, as the plain entry. */
module.exports = require('../lib/entry.js')('keep-alive')
