'use strict'

const { Worker } = require('worker_threads')
const comlink = require('comlink')
const endpoint = require('comlink/dist/umd/node-adapter.js')

async function main () {
  const worker = new Worker(require.resolve('./comlink-worker'))
  const remote = comlink.wrap(endpoint(worker))
  console.log(await remote.double(4), await remote.each([1, 2], comlink.proxy(n => n + 1)))
  await worker.terminate()
}

main()
