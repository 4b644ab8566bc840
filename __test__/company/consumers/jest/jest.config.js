'use strict'

module.exports = { testEnvironment: 'node', testSequencer: './sequencer.js', rootDir: __dirname, cache: false }
