'use strict'

module.exports = { testEnvironment: 'node', rootDir: __dirname, cache: false }
