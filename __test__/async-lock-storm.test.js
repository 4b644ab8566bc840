// timeout: 120
'use strict'

// The short form of benchmark/storm.js: fixtures/lock-storm.js says what happens in it and what must hold.

const assert = require('assert')
const { test } = require('./harness')
const storm = require('./fixtures/lock-storm')

const SECONDS = 2.5

test('a storm over some locks', { timeout: 100000 }, async () => {
  const seed = (Date.now() & 0xffffff) + 1
  const totals = await storm({ seed, seconds: SECONDS, round: 0.8 })
  console.log(`first seed ${seed}: ${JSON.stringify(totals)}`)
  assert.ok(totals.acquired > 0)
})
