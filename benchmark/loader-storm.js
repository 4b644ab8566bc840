'use strict'

// The long form of __test__/loader.test.js: see __test__/fixtures/loader-storm.js for what happens in it and what must hold.
//
//   node benchmark/loader-storm.js --seconds 300 [--node 20,22,24,26 | all] [--jobs 1]
//
// See storms-on-nodes.js for the options.

const path = require('path')
const stormsOnNodes = require('./storms-on-nodes')

const FILE = path.join(__dirname, '..', '__test__', 'fixtures', 'loader-storm.js')

stormsOnNodes(FILE, 'export', stdout => stdout.trim().split('\n').pop())
