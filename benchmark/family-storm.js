'use strict'

// The long form of __test__/family-storm.test.js: see __test__/fixtures/family-storm.js for what happens in it and what must hold.
//
//   node benchmark/family-storm.js [--seconds 60] [--seed N] [--node 14.21.3[,..] | all] [--subject export] [--jobs 1]
//
// See storms-on-nodes.js for the options.

const path = require('path')
const stormsOnNodes = require('./storms-on-nodes')

const FILE = path.join(__dirname, '..', '__test__', 'family-storm.test.js')

stormsOnNodes(FILE, 'export', (stdout) => {
  const totals = /^# (\{"steps".*\})$/m.exec(stdout)
  if (totals === null) return undefined
  const counts = JSON.parse(totals[1])
  return Object.keys(counts).map(name => `${counts[name]} ${name}`).join(', ')
})
