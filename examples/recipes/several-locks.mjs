import { performance } from 'node:perf_hooks'
import { AsyncLock } from 'atomics-waitasync'

/**
 * Runs the callback with all of these locks held, which are in one buffer. Rejects with a TimeoutError after `timeout`
 * milliseconds.
 */
async function withAll (locks, timeout, callback) {
  const deadline = performance.now() + timeout
  const tokens = []
  try {
    const sorted = Array.from(new Set(locks)).sort((a, b) => a.byteOffset - b.byteOffset)
    // A negative timeout counts as 0.
    for (const lock of sorted) tokens.push(await lock.lockAsync({ timeout: deadline - performance.now() }))
    return await callback()
  } finally {
    for (const token of tokens) token.unlock()
  }
}

const buffer = new SharedArrayBuffer(3 * AsyncLock.byteLength)
const accounts = [0, 4, 8].map(byteOffset => new AsyncLock(buffer, { byteOffset }))
const transfer = (from, to) => withAll([accounts[from], accounts[to]], 10000, () => `${from} → ${to}`)

console.log('several locks:', ...await Promise.all([transfer(0, 1), transfer(1, 2), transfer(2, 0)]))
const token = accounts[2].tryLock()
await withAll(accounts, 30, () => {}).catch(error => console.log('several locks:', error.name))
token.unlock()
