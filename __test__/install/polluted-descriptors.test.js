'use strict'

// Properties of Object.prototype that have the names of a descriptor's fields: no descriptor of the package inherits
// them, nor a proxy's handler the traps `get` and `set`.

const assert = require('assert')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const size = require('../fixtures/size')

const PROGRAM = require.resolve('../fixtures/polluted-descriptors.js')
const MAJOR = parseInt(process.versions.node, 10)
const FIELDS = ['get', 'set', 'value', 'writable', 'enumerable', 'configurable']

/** A function is called where a trap or accessor is looked up; anything else cannot be one. */
const WORLDS = FIELDS.map(name => [name, 'number']).concat(FIELDS.slice(0, 2).map(name => [name, 'function']))
/**
 * The small test has half of them for each entry, for the next entry the other half, and on the next Node it is the
 * other way round.
 */
const worldsOf = (place) => WORLDS.filter((_, n) => size(true, (n + place + (MAJOR >> 1)) % 2 === 0))

for (const [place, entry] of ['index', 'force', 'keep-alive', 'pure', 'web-locks'].entries()) {
  for (const when of ['before', 'after']) {
    test(`/${entry}, polluted ${when} it is loaded`, async t => {
      await Promise.all(worldsOf(place).map(async ([name, kind]) => {
        assert.deepStrictEqual(await runForJSON(t, [PROGRAM, entry, name, kind, when]), [], `${name}, a ${kind}`)
      }))
    })
  }
}
