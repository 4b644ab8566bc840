'use strict'

// The system's dynamic loader, which loads the library for every thread.

const assert = require('assert')
const { test } = require('../harness')
const programsBy = require('../fixtures/printed-value')
const { runForJSON, runNode } = require('../fixtures/run-node')

const NO_COMPILER = 77

const program = programsBy()

test('threads load the package while others load and unload another library', { timeout: 120000 }, async t => {
  const { code, signal, stdout, stderr } = await runNode(t, [
    require.resolve('../fixtures/loader-storm.js'),
    '--seconds',
    '3'
  ])
  if (code === NO_COMPILER) t.skip('there is no C compiler to make another library with')
  if (code !== 0) throw new Error(`it ended with ${signal || code}\n${stdout}${stderr}`)
})

test(
  'only workers load the package, and all of them have ended before others do: locks work each time',
  { timeout: 120000 },
  async t => {
    assert.deepStrictEqual(await runForJSON(t, [require.resolve('../fixtures/workers-only.js')]), Array(10).fill(true))
  }
)

program('an agent whose start JavaScript did not survive is replaced by the next one')(
  `
  const binding = require(${JSON.stringify(require.resolve('../../lib/agent/load-binding'))}).load()
  const { WORDS } = require(${JSON.stringify(require.resolve('../../lib/agent/registers'))})
  // As the package does, which has then been interrupted, by a time limit of vm.
  binding.start(new ArrayBuffer(4 * (WORDS + 4096)), () => {}, () => {}, 0, undefined, false, false)
  const { AsyncLock, notify, waitAsync } = require(${JSON.stringify(require.resolve('../../pure'))})
  const array = new Int32Array(new SharedArrayBuffer(8))
  const { value } = waitAsync(array, 0, 0)
  const lock = new AsyncLock(array.buffer, { byteOffset: 4 })
  const token = lock.tryLock()
  const claim = lock.lockAsync()
  const results = [notify(array, 0), lock.holder, token.unlock()]
  Promise.all([value, claim]).then(([outcome, token]) => {
    console.log(JSON.stringify([...results, outcome, token.unlock()]))
  })`
).gives([1, 0, true, 'ok', true])
