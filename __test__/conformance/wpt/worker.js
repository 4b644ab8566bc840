'use strict'

// A browser's Worker, made of Node's. In the worker this file is run first, and then the test's own. Runs on every
// Node.

const fs = require('fs')
const path = require('path')
const vm = require('vm')
const threads = require('worker_threads')

/** @param {{ root: string, folder: string }} where the tests are */
exports.of = ({ root, folder }) => class Worker extends threads.Worker {
  constructor (name) {
    super(__filename, { workerData: { root, file: path.join(folder, name) } })
    this.listeners = new Map()
  }

  addEventListener (type, listener) {
    const heard = (data) => listener.call(this, { data })
    this.listeners.set(listener, heard)
    this.on(type, heard)
  }

  removeEventListener (type, listener) {
    this.removeListener(type, this.listeners.get(listener))
  }
}

if (!threads.isMainThread && threads.workerData && threads.workerData.root) {
  const global = new Function('return this')() // eslint-disable-line no-new-func
  global.self = global
  if (global.AbortController === undefined) global.AbortController = require('./abort-controller')
  global.postMessage = (data) => threads.parentPort.postMessage(data)
  global.addEventListener = (type, listener) => {
    if (type === 'message') threads.parentPort.on('message', (data) => listener.call(global, { data }))
  }
  const { file } = threads.workerData
  vm.runInThisContext(fs.readFileSync(file, 'utf8'), { filename: file })
}
