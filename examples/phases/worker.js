'use strict'

const { workerData: { memory, parties, party } } = require('worker_threads')
const compute = require('./compute')

// Not by a rejection: old Node only warns of those.
compute(memory, parties, party, true).catch(error => process.nextTick(() => { throw error }))
