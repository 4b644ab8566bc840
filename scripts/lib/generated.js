'use strict'

// What `npm run lint -- --fix` writes, and docs.test.js compares: each file, and what makes its text as it should be.

const libMap = require('./lib-map')
const tables = require('./tables')

module.exports = [[libMap.page, libMap.withMap], ...tables]
