'use strict'
// subjects: none

// The switch to the code for processors without full fences. The tests of locks and of the queue run with it by
// `ATOMICS_WAITASYNC_PORTABLE=1 npm test`.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')

const root = path.join(__dirname, '..', '..')

/** Whether plain reads are taken for fenced ones, and what threads do to each other. */
const PROGRAM = `
  const { FENCED } = require(${JSON.stringify(path.join(root, 'lib', 'agent', 'registers'))})
  const { AsyncLock, notify, waitAsync } = require(${JSON.stringify(path.join(root, 'pure'))})
  const array = new Int32Array(new SharedArrayBuffer(8))
  const lock = new AsyncLock(array.buffer)
  const first = lock.tryLock()
  const second = lock.lockAsync()
  first.unlock()
  second.then((token) => {
    token.unlock()
    waitAsync(array, 1, 0)
    console.log(JSON.stringify({ FENCED, locked: lock.locked, notified: [notify(array, 1), notify(array, 1)] }))
  })`

const run = (t, env) => runForJSON(t, ['-e', PROGRAM], { env })

test('the switch turns plain reads off, where there are any, and nothing else', async t => {
  const expected = { locked: false, notified: [1, 0] }
  const x86 = ['x64', 'ia32'].includes(process.arch)
  assert.deepStrictEqual(await run(t, { ATOMICS_WAITASYNC_PORTABLE: '1' }), Object.assign({ FENCED: false }, expected))
  assert.deepStrictEqual(
    await run(t, { ATOMICS_WAITASYNC_PORTABLE: undefined }),
    Object.assign({ FENCED: x86 }, expected)
  )
})
