'use strict'

// subjects: none

// The programs in README.md run.

const { test } = require('./harness')
const { testPrograms } = require('./fixtures/markdown-programs')

testPrograms(test, 'README.md', 4)
