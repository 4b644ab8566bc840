// timeout: 400
// subjects: export
'use strict'

// Bun and Deno: storms over the locks; the first two are those of Node.

const assert = require('assert')
const { test } = require('../harness')
const { api, entry } = require('../subject')
const { startWorker } = require('../fixtures/queue-toolbox')
const { storm: familyStorm } = require('../fixtures/family-storm')
const lockStorm = require('../fixtures/lock-storm')
const size = require('../fixtures/size')
const storm = require('./fixtures/storm.cjs')

const SECONDS = size(60, 3)
const SEED = (Date.now() & 0xffffff) + 1
const timeout = 60000 + 2000 * SECONDS
// Its laws follow the 'exit' of a Worker.
const skip = process.versions.deno !== undefined && 'Deno says that a thread has ended before it has'

test('a storm over some locks', { timeout }, async () => {
  console.log(`# seed ${SEED}`)
  const totals = await lockStorm({ seed: SEED, seconds: SECONDS, round: size(3, 0.8) })
  console.log(`# ${JSON.stringify(totals)}`)
  assert.ok(totals.acquired > 0)
})

test('a storm over the family', { timeout, skip }, async () => {
  const totals = await familyStorm({ seconds: SECONDS, seed: SEED })
  console.log(`# ${JSON.stringify(totals)}`)
  for (const what of ['served', 'gaveUp', 'deaths', 'generations']) assert.ok(totals[what] > 0, `no ${what}: ${JSON.stringify(totals)}`)
})

test('a storm in which threads end themselves', { timeout }, async () => {
  const totals = await storm(entry, SECONDS)
  console.log(`# ${JSON.stringify(totals)}`)
  assert.ok(totals.done > 0 && totals.deaths > 0)
})

test('a thread that awaits again and again sees every notification, however busy the notifier is', { timeout }, async t => {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const worker = startWorker(t, async ({ api, data: { words, seconds } }) => {
    const end = Date.now() + 1000 * seconds
    let waits = 0
    while (Date.now() < end) {
      await api.waitAsync(words, 0, 0).value
      waits++
    }
    return waits
  }, { words, seconds: SECONDS })
  let result
  worker.done().then((waits) => { result = waits })
  let notified = 0
  let last = Date.now()
  while (result === undefined) {
    const count = api.notify(words, 0)
    if (count > 0) last = Date.now()
    else assert.ok(Date.now() - last < 20000, `${notified} notified`)
    notified += count
    await new Promise(setImmediate)
  }
  assert.strictEqual(result, notified)
})
