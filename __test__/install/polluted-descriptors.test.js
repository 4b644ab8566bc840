'use strict'

// Properties of Object.prototype that have the names of a descriptor's fields: no descriptor of the package inherits
// them, nor a proxy's handler the traps `get` and `set`.

const assert = require('assert')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const size = require('../fixtures/size')

const PROGRAM = require.resolve('../fixtures/polluted-descriptors.js')
const FIELDS = ['get', 'set', 'value', 'writable', 'enumerable', 'configurable']

/** A function is called where a trap or accessor is looked up; anything else cannot be one. */
const WORLDS = FIELDS.map(name => [name, 'number']).concat(FIELDS.slice(0, 2).map(name => [name, 'function']))

for (const [place, entry] of ['index', 'force', 'keep-alive', 'pure', 'web-locks'].entries()) {
  for (const [nth, when] of ['before', 'after'].entries()) {
    test(`/${entry}, polluted ${when} it is loaded`, async t => {
      const worlds = WORLDS.filter((_, n) => size.has(4, n + place + 2 * nth))
      await Promise.all(worlds.map(async ([name, kind]) => {
        assert.deepStrictEqual(await runForJSON(t, [PROGRAM, entry, name, kind, when]), [], `${name}, a ${kind}`)
      }))
    })
  }
}
