'use strict'

const fs = require('fs')
const os = require('os')
const path = require('path')

/** Runs `use` with a new folder, which is removed afterwards. */
exports.withScratch = async function withScratch (use) {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-'))
  try {
    return await use(scratch)
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}
