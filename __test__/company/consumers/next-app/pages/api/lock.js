'use strict'

const { AsyncLock } = require('atomics-waitasync')

module.exports = async function handler (_, response) {
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  response.end(await lock.executeLocked(() => 'passed'))
}
