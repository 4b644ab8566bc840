'use strict'

// One file of web-locks, in the process of a Node under test: gives it what it expects of a browser's window, and runs its tests.
// Runs on every Node.

const fs = require('fs')
const path = require('path')
const vm = require('vm')
const AbortController = require('./abort-controller')
const { functions, runAll } = require('./harness')
const Worker = require('./worker')

const { api, root, file } = JSON.parse(process.argv[2])
const global = new Function('return this')() // eslint-disable-line no-new-func
const folder = path.join(root, 'web-locks')

if (api === 'ours') require('../../web-locks')

const window = Object.assign({ self: global, Worker: Worker.of({ root, folder }), location: { pathname: '/web-locks/' + file } }, functions)
// Node's LockManager and Lock are not among its globals: the tests ask for them there.
window.isSecureContext = true
if (AbortController !== global.AbortController) window.AbortController = AbortController
for (const name of Object.keys(window)) {
  Object.defineProperty(global, name, { value: window[name], writable: true, enumerable: true, configurable: true })
}

function load (name) {
  const location = name[0] === '/' ? path.join(root, name) : path.join(folder, name)
  vm.runInThisContext(fs.readFileSync(location, 'utf8'), { filename: location })
}

// Some tests leave a rejection or an exception unhandled, on purpose; each result is told anyway.
process.on('unhandledRejection', () => {})
process.on('uncaughtException', () => {})

const source = fs.readFileSync(path.join(folder, file), 'utf8')
for (const line of source.split('\n')) {
  const script = /^\/\/ META: script=(.*)$/.exec(line)
  if (script !== null) load(script[1])
}
load(file)
// As a page, the process lives as long as its tests, and no longer: neither for a lock that is never released nor for a worker.
setInterval(() => {}, 1000)
runAll().then(() => process.exit(0))
