'use strict'

// An entry that changes nothing is light: it loads neither the native library nor worker_threads.

const assert = require('assert')

const loaded = () => [
  Object.keys(require.cache).some((file) => file.endsWith('.node')),
  process.moduleLoadList.indexOf('NativeModule worker_threads') !== -1
]

require('atomics-waitasync')
assert.deepStrictEqual(loaded(), [false, false])
// They would be noticed.
require('atomics-waitasync/force')
assert.deepStrictEqual(loaded(), [true, true])
console.log('passed')
