'use strict'

// One file of web-locks, in the process of a Node under test: gives it what it expects of a browser's window, and runs
// its tests, by testharness.js. Prints a line of JSON for each test: `{ name }` when it is declared, `{ name, failed,
// message }` when it has ended. Runs on every Node.

const fs = require('fs')
const path = require('path')
const vm = require('vm')
const AbortController = require('./abort-controller')
const Worker = require('./worker')

const { api, root, harness, file } = JSON.parse(process.argv[2])
const global = new Function('return this')() // eslint-disable-line no-new-func
const folder = path.join(root, 'web-locks')

if (api === 'ours') require('../../../web-locks')

const window = {
  self: global,
  globalThis: global,
  // Old Nodes have another one.
  GLOBAL: undefined,
  Worker: Worker.of({ root, folder }),
  location: { pathname: '/web-locks/' + file },
  isSecureContext: true
}
if (AbortController !== global.AbortController) window.AbortController = AbortController
const define = (name, value) =>
  Object.defineProperty(global, name, { value, writable: true, enumerable: true, configurable: true })
for (const name of Object.keys(window)) define(name, window[name])

function load (location) {
  vm.runInThisContext(fs.readFileSync(location, 'utf8'), { filename: location })
}

const say = (result) => { fs.writeSync(1, `wpt-result ${JSON.stringify(result)}\n`) }

load(harness)
// Where there is no DOMException, an Error of that name has to do.
if (typeof DOMException !== 'function') {
  define('promise_rejects_dom', (test, name, promise) =>
    promise.then(
      () => {
        throw new Error('should have rejected')
      },
      error => global.assert_equals(error.name, name)
    )
  )
}
global.add_test_state_callback(({ name }) => say({ name }))
global.add_result_callback(({ name, status, message }) => say({ name, failed: status !== 0, message }))
global.add_completion_callback(() => process.exit(0))

// Some tests leave a rejection or an exception unhandled, on purpose; each result is told anyway.
process.on('unhandledRejection', () => {})
process.on('uncaughtException', () => {})

for (const line of fs.readFileSync(path.join(folder, file), 'utf8').split('\n')) {
  const script = /^\/\/ META: script=(.*)$/.exec(line)
  if (script !== null) load(script[1][0] === '/' ? path.join(root, script[1]) : path.join(folder, script[1]))
}
load(path.join(folder, file))
// As a page, the process lives as long as its tests, and no longer: neither for a lock that is never released nor for a
// worker.
setInterval(() => {}, 1000)
