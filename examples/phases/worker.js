'use strict'

const { workerData: { memory, parties, party } } = require('worker_threads')
const compute = require('./compute')

// Thrown, because an old Node only warns of a rejection.
compute(memory, parties, party, true).catch(error => process.nextTick(() => { throw error }))
