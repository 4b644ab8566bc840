// timeout: 400
// subjects: export
'use strict'

// Bun and Deno: a substitute for the soak in Deno, which cannot run it.

const assert = require('assert')
const { test } = require('../../harness')
const { api, entry } = require('../../subject')
const { startWorker } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')
const storm = require('./fixtures/storm.cjs')

const SECONDS = size(60, 3)
const timeout = 60000 + 2000 * SECONDS

test('a storm in which threads end themselves', { timeout }, async () => {
  const totals = await storm(entry, SECONDS)
  console.log(`# ${JSON.stringify(totals)}`)
  assert.ok(totals.done > 0 && totals.deaths > 0)
})

test(
  'a thread that awaits again and again sees every notification, however busy the notifier is',
  { timeout },
  async t => {
    const words = new Int32Array(new SharedArrayBuffer(4))
    const worker = startWorker(t, { words, seconds: SECONDS }, async ({ api, data: { words, seconds } }) => {
      const end = Date.now() + 1000 * seconds
      let waits = 0
      while (Date.now() < end) {
        await api.waitAsync(words, 0, 0).value
        waits++
      }
      return waits
    })
    let result
    worker.done().then(waits => {
      result = waits
    })
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
  }
)
