// The DOM's library: its AbortSignal, its global object, and the buffer of a WebAssembly memory serve without a cast.
// A real ArrayBuffer has the same type as the latter; the constructor refuses it.
// needs: lib dom

import { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, install, waitAsync } from 'atomics-waitasync'

declare const memory: WebAssembly.Memory

const lock = new AsyncLock(memory.buffer)
new RwLock(memory.buffer, { byteOffset: 4 })
new Semaphore(memory.buffer)
new Condition(memory.buffer)
new Barrier(memory.buffer, { parties: 2 })
new Latch(memory.buffer, { count: 2 })
lock.lockAsync({ signal: new AbortController().signal })
waitAsync(new Int32Array(memory.buffer), 0, 0, undefined, { signal: new AbortController().signal })
install({ target: window })
// @ts-expect-error a view is no buffer
new AsyncLock(new Int32Array(memory.buffer))
// @ts-expect-error without the number of parties
new Barrier(memory.buffer)
// @ts-expect-error the controller is not the signal
lock.lockAsync({ signal: new AbortController() })
