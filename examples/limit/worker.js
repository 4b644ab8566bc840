'use strict'

const { workerData: { memory, files } } = require('worker_threads')
const readFiles = require('./read-files')

// Not by a rejection: old Node only warns of those.
readFiles(memory, files).catch(error => process.nextTick(() => { throw error }))
