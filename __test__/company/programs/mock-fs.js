'use strict'

const { Worker } = require('worker_threads')
const mock = require('mock-fs')

mock({})
new Worker('require("worker_threads").parentPort.postMessage("started")', { eval: true }).on('message', message => {
  mock.restore()
  console.log(message)
})
