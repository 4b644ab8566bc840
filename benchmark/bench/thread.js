'use strict'

// What a group of figures does in other threads: the function `threads[name]` of its module, called with the data that it was started
// with and the port to the thread that started it.

const path = require('path')
// Before anything can have been installed.
require('./queues')
const { parentPort, workerData } = require('worker_threads')

const { group, name, data } = workerData
const { threads } = require(path.join(__dirname, 'groups', group))

Promise.resolve(threads[name](data, parentPort)).catch((error) => {
  // As an uncaught exception it reaches the thread's parent.
  setImmediate(() => { throw error })
})
