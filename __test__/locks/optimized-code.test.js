'use strict'

// subjects: none

// Methods of a lock that the engine has compiled work as before. (Node 26.10 miscompiles a variable of a module that an
// inlined function assigns: some threads took their lock for another object.)

const assert = require('assert')
const { runForJSON } = require('../fixtures/run-node')
const { test } = require('../harness')

test('a lock that is used often stays a lock', { timeout: 120000 }, async t => {
  assert.strictEqual(await runForJSON(t, [require.resolve('../fixtures/optimized-code')]), 0)
})
