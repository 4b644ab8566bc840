'use strict'

// The linter of JavaScript, which is its formatter, too: what it is given is in eslint.config.js.

const fs = require('fs')
const path = require('path')

const root = path.join(__dirname, '..', '..')

/** Its command line: a file that Node runs, and arguments. `skipped` says why this Node cannot run it. */
function javascriptLint ({ fix = false } = {}) {
  const folder = path.join(root, 'node_modules', 'eslint')
  const { engines, bin } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const [major, minor] = process.versions.node.split('.').map(Number)
  // `^20.19.0 || ^22.13.0 || >=24`
  const fits = engines.node.split('||').some(range => {
    const [, operator, from, least = 0] = /^\s*(\^|>=)(\d+)(?:\.(\d+))?/.exec(range)
    return major === Number(from) ? minor >= Number(least) : operator === '>=' && major > Number(from)
  })
  if (!fits) return { skipped: `the linter needs Node ${engines.node}` }
  return { args: [path.join(folder, bin.eslint), root, '--max-warnings=0', ...(fix ? ['--fix'] : [])] }
}

module.exports = { javascriptLint }
