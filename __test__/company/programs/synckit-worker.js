'use strict'

const { runAsWorker } = require('synckit')

runAsWorker(async n => {
  await new Promise(resolve => setTimeout(resolve, 10))
  return n * 2
})
