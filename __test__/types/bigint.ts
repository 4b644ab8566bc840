// Libraries with BigInt64Array: the functions, on one.
// needs: lib >= es2020

import { WaitAsyncResult, notify, wait, waitAsync, waiterCount } from 'atomics-waitasync'

const ba = new BigInt64Array(new SharedArrayBuffer(16))

const waited: 'ok' | 'not-equal' | 'timed-out' = wait(ba, 1, BigInt(1), 10)
// @ts-expect-error the element of a BigInt64Array is a BigInt
wait(ba, 1, 1)
// @ts-expect-error the element of an Int32Array is a number
wait(new Int32Array(1), 0, BigInt(1))
// @ts-expect-error not an unsigned one
wait(new BigUint64Array(1), 0, BigInt(1))

const result: WaitAsyncResult = waitAsync(ba, 1, BigInt(0), 10)
waitAsync(ba, 1, BigInt(0), undefined, { signal: { aborted: false, addEventListener () {} } })
// @ts-expect-error the element of a BigInt64Array is a BigInt
waitAsync(ba, 1, 0)

const woken: number = notify(ba, 1) + notify(ba, 1, 2) + waiterCount(ba, 1)
// @ts-expect-error a count is a number
notify(ba, 1, BigInt(2))

const either: Int32Array | BigInt64Array = Math.random() < 0.5 ? ba : new Int32Array(4)
notify(either, 0)
waiterCount(either, 0)

const installed: WaitAsyncResult = Atomics.waitAsync(new BigInt64Array(new SharedArrayBuffer(8)), 0, BigInt(0))
// @ts-expect-error the index is a number
Atomics.waitAsync(new BigInt64Array(new SharedArrayBuffer(8)), '0', BigInt(0))
