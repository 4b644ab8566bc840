'use strict'

// The tree as it is now, where it may be changed.

const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')

const root = path.join(__dirname, '..', '..')

/**
 * A copy of the tree without what git ignores, but with a link to node_modules.
 * @param {string} prefix how the new folder's name begins
 * @returns {string} its absolute path
 */
function copyTree (prefix) {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), prefix))
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
  for (const name of names.split('\0').filter(Boolean)) {
    const from = path.join(root, name)
    if (!fs.existsSync(from)) continue
    fs.mkdirSync(path.dirname(path.join(copy, name)), { recursive: true })
    fs.copyFileSync(from, path.join(copy, name))
  }
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'), 'junction')
  return copy
}

module.exports = { copyTree }
