'use strict'

// Copies programs, with the files that @vercel/nft names, into another folder: node trace.js FOLDER PROGRAM ...

const fs = require('fs')
const path = require('path')
const { nodeFileTrace } = require('@vercel/nft')

const [, , folder, ...programs] = process.argv
nodeFileTrace(programs).then(({ fileList }) => {
  for (const file of fileList) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.copyFileSync(file, path.join(folder, file))
  }
}).catch(error => {
  console.error(error)
  process.exitCode = 1
})
