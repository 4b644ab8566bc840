'use strict'

// Each entry point by require, with its waits between two threads.

const assert = require('assert')
const { Worker, isMainThread, workerData } = require('worker_threads')

const NAMES = [
  'wait', 'notify', 'waitAsync', 'install', 'uninstall', 'engine', 'ref', 'unref', 'waiterCount', 'AsyncLock'
]

async function main () {
  const lacking = Atomics.waitAsync === undefined
  const pure = require('atomics-waitasync/pure')
  assert.strictEqual(Atomics.waitAsync === undefined, lacking)
  const api = require('atomics-waitasync')
  assert.strictEqual(api.engine, lacking ? 'addon' : 'host')
  assert.strictEqual(require('atomics-waitasync/package.json').name, 'atomics-waitasync')
  for (const entry of [pure, api]) for (const name of NAMES) assert.ok(name in entry, name)
  // Its file has nothing that an old Node cannot read.
  assert.deepStrictEqual(api.snapshot().held, [])

  await wakes(Atomics, 'global')
  await wakes(pure, 'pure')
  console.log('passed')
}

/** Checks that a worker's notify settles a promise of this thread. */
async function wakes (api, which) {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const { async, value } = api.waitAsync(words, 0, 0, 20000)
  assert.strictEqual(async, true)
  const worker = new Worker(__filename, { workerData: { words, which } })
  worker.on('error', error => { throw error })
  assert.strictEqual(await value, 'ok')
  assert.strictEqual(Atomics.load(words, 0), 1)
}

if (isMainThread) {
  main().catch(fail)
} else {
  const { words, which } = workerData
  const { notify } = which === 'pure' ? require('atomics-waitasync/pure') : Atomics
  Atomics.store(words, 0, 1)
  notify(words, 0)
}

function fail (error) {
  console.error(error)
  process.exitCode = 1
}
