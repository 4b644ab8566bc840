'use strict'

// What an install puts into another object changes nothing here.
// subjects: export, force
// long: each of its tests is a soak
// timeout: 600

// Short soaks: main.js says what happens in one, and operations/ what must hold.
//
//   node __test__/soak/short.test.js [--seconds n] [--seed n]

const assert = require('assert')
const { test } = require('../harness')
const { numberArgument } = require('../fixtures/queue-toolbox')
const { runNode } = require('../fixtures/run-node')
const size = require('../fixtures/size')
const subject = require('../subject')

const SECONDS = numberArgument('--seconds', size(15, 2))
const SEED = numberArgument('--seed', 1 + Date.now() % 1e6)

console.log(`# --seconds ${SECONDS} --seed ${SEED}`)

// The last two use the package's own queue, whatever the global Atomics has.
const ofForce = subject.name === 'force' ? ['names', 'files', 'values,locks,names,files,queues,messages'] : []
const options = { timeout: 120000 + SECONDS * 1000 }
for (const only of ['locks', 'queues', 'messages', 'values', ...ofForce]) {
  test(`no law of ${only} is broken while threads give up, abort and die, and processes end`, options, async t => {
    const args = ['--expose-gc', require.resolve('./main'), String(SECONDS), String(SEED), only]
    const { code, signal, stdout, stderr } = await runNode(t, args, { env: { SUBJECT: subject.name } })
    assert.strictEqual(signal || code, 0, stdout + stderr)
    const totals = JSON.parse(stdout.trim().split('\n').pop())
    console.log(`# ${JSON.stringify(totals)}`)
    const counted = ['operations', 'died', 'children', ...(only.includes('locks') ? ['gave up'] : [])]
    for (const what of counted) assert.ok(totals[what] > 0, `none: ${what}`)
  })
}
