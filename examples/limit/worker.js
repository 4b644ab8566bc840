'use strict'

const { workerData: { memory, files } } = require('worker_threads')
const readFiles = require('./read-files')

// Thrown, because an old Node only warns of a rejection.
readFiles(memory, files).catch(error => process.nextTick(() => { throw error }))
