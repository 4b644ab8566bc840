'use strict'
/* global it */

const assert = require('assert')
const { Worker } = require('worker_threads')

it('another answers', async () => {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true })
  assert.strictEqual(await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)), 1)
})
