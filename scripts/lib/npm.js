'use strict'

// Runs the npm at hand: the one that started this script, otherwise the one on the PATH.

const path = require('path')
const { run } = require('./child')

/** Like `run` of child.js. */
function npm (args, options) {
  const own = process.env.npm_execpath
  if (own && /^npm-cli\.c?js$/.test(path.basename(own))) return run(process.execPath, [own, ...args], options)
  // On Windows npm is a batch file, which only a shell can start. No argument used here needs quoting.
  return run('npm', args, { ...options, shell: process.platform === 'win32' })
}

module.exports = { npm }
