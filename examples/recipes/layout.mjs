import { AsyncLock, Condition, Semaphore } from 'atomics-waitasync'

const LINE = 64 // bytes: a cache line of most processors

/** Returns the layout of the shared memory: every thread calls it. */
const layout = buffer => ({
  lock: new AsyncLock(buffer), // bytes 0 to 3
  changed: new Condition(buffer, { byteOffset: 4 }), // its word is never written: it may share a line
  limit: new Semaphore(buffer, { byteOffset: LINE, permits: 8 }),
  samples: new Float64Array(buffer, 2 * LINE, 1000) // protected by the lock
})

const { lock, limit, samples } = layout(new SharedArrayBuffer(2 * LINE + 8 * 1000))
await lock.executeLocked(() => { samples[999] = 1.5 })
console.log('layout:', samples[999], limit.available)
