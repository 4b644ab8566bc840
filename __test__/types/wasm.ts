// The buffer of a WebAssembly memory, without a cast. A real ArrayBuffer has the same type there; the constructor refuses it.
// needs: lib dom

import { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, waitAsync } from 'atomics-waitasync'

declare const memory: WebAssembly.Memory

new AsyncLock(memory.buffer)
new RwLock(memory.buffer, { byteOffset: 4 })
new Semaphore(memory.buffer)
new Condition(memory.buffer)
new Barrier(memory.buffer, { parties: 2 })
new Latch(memory.buffer, { count: 2 })
waitAsync(new Int32Array(memory.buffer), 0, 0)
// @ts-expect-error a view is no buffer
new AsyncLock(new Int32Array(memory.buffer))
// @ts-expect-error without the number of parties
new Barrier(memory.buffer)
