'use strict'

const { workerData: { memory, permits } } = require('worker_threads')
const { Latch, Semaphore } = require('../..')

new Semaphore(memory).use(permits, () => {
  new Latch(memory, { count: 1, byteOffset: 4 }).countDown()
  return new Promise(resolve => setTimeout(resolve, 1e6))
})
