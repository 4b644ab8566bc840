'use strict'

// A Worker that has loaded the package, and has not used it yet, may come to notify: waits hold the event loop for it.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runNode } = require('../fixtures/run-node')

const root = path.join(__dirname, '..', '..')
const entryFile = (name) => path.join(root, name === 'index' ? '' : name, 'index.js')

/**
 * Runs a main thread that waits for a latch, and an unref'd Worker that loads an entry and then runs `source`, once
 * main waits. Gives the lines of the output.
 */
async function linesOf (t, entry, source) {
  const worker = `
    const { parentPort, workerData } = require('worker_threads')
    const { Latch } = require(${JSON.stringify(entryFile(entry))})
    parentPort.postMessage('loaded')
    const words = new Int32Array(workerData)
    const timer = setInterval(() => {
      if (Atomics.load(words, 1) === 0) return
      clearInterval(timer)
      ${source}
    }, 1)`
  const { code, stdout, stderr } = await runNode(t, ['-e', `
    const { Worker } = require('worker_threads')
    const { Latch } = require(${JSON.stringify(entryFile('pure'))})
    const words = new Int32Array(new SharedArrayBuffer(8))
    const worker = new Worker(${JSON.stringify(worker)}, { eval: true, workerData: words.buffer })
    process.on('warning', ({ code }) => { if (code) console.log(code) })
    worker.once('message', () => {
      worker.unref()
      new Latch(words.buffer, { count: 1 }).waitAsync().then(() => console.log('open'))
      Atomics.store(words, 1, 1)
    })`])
  assert.strictEqual(code, 0, stderr)
  return stdout.trim().split('\n')
}

for (const entry of ['index', 'keep-alive', 'force']) {
  test(`a Worker that has loaded /${entry} notifies later, by its first use`, async t => {
    const source = 'setTimeout(() => new Latch(workerData, { count: 1 }).countDown(), 300)'
    assert.deepStrictEqual(await linesOf(t, entry, source), ['open'])
  })
}

test('a Worker that has loaded the package ends without a use: nothing holds', async t => {
  for (const source of ['', 'process.exit()', 'Latch.create({ count: 1 }).countDown()']) {
    assert.deepStrictEqual(await linesOf(t, 'pure', source), ['ATOMICS_WAITASYNC_PENDING'])
  }
})
