'use strict'

// subjects: none

// The engine compiles the methods of a lock when they have been called often, and then they do what they did before.
// (Node 26.10 miscompiles a variable of a module that an inlined function assigns: some threads took their lock for
// another object.)

const assert = require('assert')
const { runForJSON } = require('../fixtures/run-node')
const { test } = require('../harness')

test('a lock that is used often stays a lock', { timeout: 120000 }, async t => {
  assert.strictEqual(await runForJSON(t, [require.resolve('../fixtures/optimized-code')]), 0)
})
