'use strict'

// To be loaded first: from here on the native library gets no buffers for memory that is not JavaScript's, which is the
// rule in Electron. (That rule is part of how its V8 was built, so no other host can be made to have it.)

const assert = require('assert')
const path = require('path')
const { isMainThread } = require('worker_threads')

const home = path.dirname(require.resolve('atomics-waitasync/package.json'))
const { packageName, target } = require(path.join(home, 'lib', 'agent', 'target.js'))
const native = require(require.resolve(packageName(target()), { paths: [home] }))
let asked = 0
native.counters = () => {
  asked++
  return undefined
}

if (isMainThread) process.on('exit', () => assert.ok(asked > 0, 'nobody asked for such a buffer'))
