'use strict'

// The long form of __test__/async-lock-storm.test.js: see __test__/fixtures/lock-storm.js for what happens in a storm over
// some locks, and what must hold.
//
//   node benchmark/storm.js [--seconds 60] [--seed N] [--node 14.21.3[,..] | all] [--subject force] [--jobs 1]
//
// See storms-on-nodes.js for the options. `--seed` is that of the first storm.

const path = require('path')
const stormsOnNodes = require('./storms-on-nodes')

const FILE = path.join(__dirname, '..', '__test__', 'fixtures', 'lock-storm.js')

// Its last line.
stormsOnNodes(FILE, 'force', stdout => stdout.trim().split('\n').pop())
