// Node's own types: its AbortSignal serves, and nothing clashes.
// needs: lib node

import { MessageChannel, Worker } from 'worker_threads'
import { AsyncLock, install, waitAsync } from 'atomics-waitasync'

const lock = new AsyncLock(new SharedArrayBuffer(4))
lock.lockAsync({ signal: new AbortController().signal })
lock.lockAsync({ signal: AbortSignal.timeout(10) })
install({ target: global })
waitAsync(new BigInt64Array(new SharedArrayBuffer(8)), 0, BigInt(0))
Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(8)), 0, 0)
new MessageChannel().port1.postMessage(lock.sab)
// @ts-expect-error a worker is no buffer
new AsyncLock(new Worker(''))
