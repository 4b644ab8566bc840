'use strict'

const assert = require('assert')
const { test } = require('node:test')
const { Worker } = require('worker_threads')

test('a worker answers', async () => {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true })
  assert.strictEqual(await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)), 1)
})
