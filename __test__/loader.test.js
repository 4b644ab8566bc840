'use strict'
// subjects: none

// The dynamic loader of the system, which every thread uses that loads the package.

const assert = require('assert')
const { test } = require('./harness')
const { runForJSON, runNode } = require('./fixtures/run-node')

const NO_COMPILER = 77

test('threads load the package while others load and unload another library', { timeout: 120000 }, async t => {
  const { code, signal, stdout, stderr } = await runNode(t, [require.resolve('./fixtures/loader-storm.js'), '--seconds', '3'])
  if (code === NO_COMPILER) t.skip('there is no C compiler to make another library with')
  if (code !== 0) throw new Error(`it ended with ${signal || code}\n${stdout}${stderr}`)
})

test('only workers load the package, and all of them have ended before others do: locks work each time', { timeout: 120000 }, async t => {
  assert.deepStrictEqual(await runForJSON(t, [require.resolve('./fixtures/workers-only.js')]), Array(10).fill(true))
})
