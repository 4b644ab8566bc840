'use strict'

// A dump at a signal says of each class, and of each wait for it, what formatSnapshot says of a snapshot.

const assert = require('assert')
const { test } = require('../../harness')
const { FORMS, NAMES } = require('../../fixtures/every-class')
const { run } = require('../../fixtures/programs')

const CODE = 'ATOMICS_WAITASYNC_DUMP'
const needsSignals = { skip: process.platform === 'win32' && 'Windows has no such signals' }

/** Without the times, which differ, and what a dump says of settings. */
const HINT = /\nATOMICS_WAITASYNC_STALL=.*\n$/
const plain = text => text.replace(HINT, '').replace(/\d+(\.\d+)? (ms|s|min|h)\b/g, 'T')

/** Runs a program that says a snapshot's text, and is then sent the signal. Gives the text and the dump. */
async function dumped (t, data, fn) {
  let isSent = false
  const { lines, stderr } = await run(t, {
    data,
    env: { [CODE]: 'SIGQUIT' },
    onOutput ({ child, lines, stderr }) {
      if (HINT.test(stderr.split(`[${CODE}] `)[1] || '')) child.kill('SIGKILL')
      else if (lines.length > 0 && !isSent) isSent = child.kill('SIGQUIT')
    }
  }, fn)
  assert.ok(lines.length > 0, stderr)
  return { text: plain(JSON.parse(lines[0])), dump: plain(stderr.split(`[${CODE}] `)[1]), stderr }
}

for (const { name, form } of FORMS.filter(({ blocks }) => !blocks)) {
  test(`${name} ${form}: a dump says what formatSnapshot says`, needsSignals, async t => {
    const { text, dump, stderr } = await dumped(t, { name, form }, async ({ api, data, require, say, until }) => {
      const { FORMS, allocate, classes, thingsIn } = require('./every-class')
      const things = thingsIn(allocate(), data.name)
      classes[data.name].occupy(things)
      FORMS.find(({ name, form }) => name === data.name && form === data.form).run(things, {}).catch(() => {})
      await until(() => api.snapshot().waiting.length === 1)
      say(JSON.stringify(api.formatSnapshot(api.snapshot())))
      setInterval(() => {}, 1000)
    })
    assert.strictEqual(dump.trim(), text.trim(), stderr)
    const kind = NAMES.find(kind => name.startsWith(kind))
    assert.ok(text.includes('1 awaited') && text.includes(`${kind}, id `), text)
  })
}

for (const mode of ['put', 'take', 'idle']) {
  test(`Queue ${mode}: a dump says what formatSnapshot says`, needsSignals, async t => {
    const { text, dump, stderr } = await dumped(t, mode, async ({ api, data, say, until }) => {
      const queue = api.Queue.create({ capacity: 1, messageSize: 8 })
      if (data !== 'take') queue.tryPut(1)
      ;({ put: () => queue.putAsync(2), take: () => queue.takeAsync(), idle: () => queue.onIdle() })[data]()
      await until(() => api.snapshot().waiting.length === 1)
      say(JSON.stringify(api.formatSnapshot(api.snapshot())))
      setInterval(() => {}, 1000)
    })
    assert.strictEqual(dump.trim(), text.trim(), stderr)
    assert.ok(text.includes(mode) && text.includes('Queue, id '), text)
  })
}
