'use strict'

// These classes use the package's own queue, whichever functions the global Atomics has.
// subjects: force
// timeout: 400

// Condition, Semaphore, RwLock and Barrier in a storm: see fixtures/family-storm.js.
//
//   node __test__/family-storm.test.js [--seed n] [--seconds n]

const assert = require('assert')
const { test } = require('./harness')
const { storm } = require('./fixtures/family-storm')
const { numberArgument } = require('./fixtures/queue-toolbox')

const SEED = numberArgument('--seed', Date.now() % 1e9)
const SECONDS = numberArgument('--seconds', 3)

console.log(`# --seed ${SEED} --seconds ${SECONDS}`)

test('no law is broken while threads give up, abort and die', { timeout: 60000 + SECONDS * 1000 }, async () => {
  const totals = await storm({ seconds: SECONDS, seed: SEED })
  console.log(`# ${JSON.stringify(totals)}`)
  for (const what of ['served', 'gaveUp', 'deaths', 'generations']) assert.ok(totals[what] > 0, `no ${what}: ${JSON.stringify(totals)}`)
})
