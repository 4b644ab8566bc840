'use strict'

const fs = require('fs')
const os = require('os')
const path = require('path')

const root = path.join(__dirname, '..', '..')
const LEFT_OUT = ['.git', 'dist', 'node_modules', 'target']

/**
 * Copies the tree as it is now, with the native library, to where it may be changed; node_modules is a link.
 * @param {string} prefix how the new folder's name begins
 * @returns {string} its absolute path
 */
exports.copyTree = function copyTree (prefix) {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), prefix))
  fs.cpSync(root, copy, { recursive: true, filter: from => !LEFT_OUT.includes(path.basename(from)) })
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'), 'junction')
  return copy
}
