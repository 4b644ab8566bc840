'use strict'
// subjects: none

// Properties of Object.prototype that have the names of a descriptor's fields: no descriptor of the package inherits them, nor a proxy's
// handler the traps `get` and `set`.

const assert = require('assert')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')

const PROGRAM = require.resolve('../fixtures/polluted-descriptors.js')
const FIELDS = ['get', 'set', 'value', 'writable', 'enumerable', 'configurable']

for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
  for (const when of ['before', 'after']) {
    test(`/${entry}, polluted ${when} it is loaded`, async t => {
      // A function is called where a trap or accessor is looked up; anything else cannot be one.
      const worlds = FIELDS.map(name => [name, 'number']).concat(FIELDS.slice(0, 2).map(name => [name, 'function']))
      await Promise.all(worlds.map(async ([name, kind]) => {
        assert.deepStrictEqual(await runForJSON(t, [PROGRAM, entry, name, kind, when]), [], `${name}, a ${kind}`)
      }))
    })
  }
}
