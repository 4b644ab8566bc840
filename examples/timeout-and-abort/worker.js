'use strict'

const { parentPort, workerData } = require('worker_threads')
const { AsyncLock } = require('../..')

const lock = new AsyncLock(workerData)
// Blocks for two seconds at most.
const token = lock.lockIfAvailable(2000)
parentPort.postMessage('locked')
parentPort.once('message', () => token.unlock())
