'use strict'

// A group's part in other threads: the function `threads[name]` of its module, called with the data that it was started
// with, gives a function (or a promise of one), which gives the answer to each request of the thread that started it.
// It may stop listening, by its second argument: then only its own acts keep the thread alive.

const path = require('path')
// Before anything can have been installed.
require('./queues')
const { parentPort, workerData } = require('worker_threads')
const { tie } = require('./team')

const { group, name, data } = workerData
const { threads } = require(path.join(__dirname, 'groups', group))

let answer
const hear = async request =>
  parentPort.postMessage(request && request.core !== undefined ? tie(request.core) : await answer(request))
const stopListening = () => parentPort.removeListener('message', hear)

Promise.resolve(threads[name](data, stopListening)).then((given) => {
  answer = given
  parentPort.on('message', hear)
}).catch((error) => {
  // As an uncaught exception it reaches the thread's parent.
  setImmediate(() => { throw error })
})
