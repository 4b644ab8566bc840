'use strict'

// A worker of bystander.js: says that it has started, and answers each message with the same.

const { parentPort } = require('worker_threads')

parentPort.on('message', message => parentPort.postMessage(message))
parentPort.postMessage('started')
