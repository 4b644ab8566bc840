'use strict'

// Runs a test file without the tests in differences.cjs: `bun run.cjs FILE`, `deno run -A run.cjs FILE`.

const path = require('path')
const differences = require('./differences.cjs')
const harness = require('../../harness')

const file = path.resolve(process.argv[2])
const name = path.relative(path.join(__dirname, '..', '..'), file).replace(/\\/g, '/')
const titles = differences[process.versions.bun ? 'bun' : 'deno'][name] || {}
const { test } = harness
harness.test = (title, ...rest) => {
  const reason = titles[title.replace(/\s+/g, ' ')]
  return reason === undefined ? test(title, ...rest) : test(title, { skip: reason }, () => {})
}
require(file)
