// Every library: the functions, on an Int32Array.

import { WaitAsyncOptions, WaitAsyncResult, WaitResult } from 'atomics-waitasync'
import { notify, ref, unref, wait, waitAsync, waiterCount } from 'atomics-waitasync'

const ia = new Int32Array(new SharedArrayBuffer(8))

const waited: WaitResult = wait(ia, 0, 1, 10)
const without: 'ok' | 'not-equal' | 'timed-out' = wait(ia, 0, 1)
// @ts-expect-error there is no other outcome
const impossible: 'ok' | 'not-equal' = wait(ia, 0, 1)
// @ts-expect-error the element of an Int32Array is a number
wait(ia, 0, '1')
// @ts-expect-error an Int32Array or a BigInt64Array
wait(new Uint32Array(2), 0, 0)
// @ts-expect-error the value is missing
wait(ia, 0)
// @ts-expect-error the timeout is a number
wait(ia, 0, 0, '10')

const woken: number = notify(ia, 0) + notify(ia, 0, 1) + notify(ia, 0, Infinity)
// @ts-expect-error the count is a number
notify(ia, 0, 'all')
// @ts-expect-error an Int32Array or a BigInt64Array
notify([0], 0)
// @ts-expect-error an Int32Array or a BigInt64Array
notify(new Float64Array(1), 0)

const result: WaitAsyncResult = waitAsync(ia, 0, 0, 10)
const options: WaitAsyncOptions = { signal: { aborted: false, addEventListener () {} } }
const cancellable: WaitAsyncResult = waitAsync(ia, 0, 0, undefined, options)
waitAsync(ia, 0, 0, 10, {})
waitAsync(ia, 0, 0, 10, { signal: undefined })
// @ts-expect-error the timeout is an argument
waitAsync(ia, 0, 0, 10, { timeout: 10 })
// @ts-expect-error a signal has addEventListener
waitAsync(ia, 0, 0, 10, { signal: { aborted: false } })
// @ts-expect-error a blocked thread takes no signal
wait(ia, 0, 0, 10, options)
if (result.async) {
  const promise: Promise<'ok' | 'timed-out'> = result.value
  const held: boolean = ref(promise) || unref(promise)
  // @ts-expect-error a promise is not an outcome
  const outcome: string = result.value
  // @ts-expect-error there is no such outcome of a promise
  promise.then(outcome => outcome === 'not-equal')
} else {
  const outcome: 'not-equal' | 'timed-out' = result.value
  // @ts-expect-error a wait that is over at once cannot be notified
  const notified: boolean = result.value === 'ok'
  // @ts-expect-error it is no promise
  result.value.then(String)
}
// @ts-expect-error not before `async` has been looked at
result.value.then(String)
// @ts-expect-error the element of an Int32Array is a number
waitAsync(ia, 0, null)
// @ts-expect-error an Int32Array or a BigInt64Array
waitAsync(new SharedArrayBuffer(4), 0, 0)

const waiting: number = waiterCount(ia, 0)
// @ts-expect-error the index is missing
waiterCount(ia)
// @ts-expect-error a promise, not the result with the promise in it
ref(result)
// @ts-expect-error a promise
unref(ia)
