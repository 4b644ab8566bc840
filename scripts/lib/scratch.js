'use strict'

const fs = require('fs')
const os = require('os')
const path = require('path')

const root = path.join(__dirname, '..', '..')
const LEFT_OUT = ['.git', 'dist', 'node_modules', 'target']

/** Runs `use` with a new folder, which is removed afterwards. */
async function withScratch (use) {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-'))
  try {
    return await use(scratch)
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Calls with a copy of the present tree, and its native library; its node_modules is a link. */
function withCopy (use) {
  return withScratch(copy => {
    fs.cpSync(root, copy, { recursive: true, filter: from => !LEFT_OUT.includes(path.basename(from)) })
    fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'), 'junction')
    return use(copy)
  })
}

module.exports = { withCopy, withScratch }
