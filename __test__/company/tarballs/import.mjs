// Each entry point as an ES module: by names, and as a whole.

import assert from 'assert'
import api, { waitAsync, notify, engine, AsyncLock } from 'atomics-waitasync'
import * as pure from 'atomics-waitasync/pure'
import { wait } from 'atomics-waitasync/keep-alive'

assert.strictEqual(typeof wait, 'function')
assert.strictEqual(api.waitAsync, waitAsync)
assert.ok(['addon', 'host'].includes(engine))
assert.strictEqual(new AsyncLock(new SharedArrayBuffer(4)).locked, false)

const words = new Int32Array(new SharedArrayBuffer(4))
const works = [[waitAsync, notify], [pure.waitAsync, pure.notify]].map(([waitAsync, notify]) => {
  const { value } = waitAsync(words, 0, 0, 20000)
  assert.strictEqual(notify(words, 0), 1)
  return value
})
Promise.all(works).then(outcomes => {
  assert.deepStrictEqual(outcomes, ['ok', 'ok'])
  console.log('passed')
}).catch(error => {
  console.error(error)
  process.exitCode = 1
})
