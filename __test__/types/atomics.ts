// Every library: what an entry point gives Atomics, without a clash where the library has it. For the entries' files.

const ia = new Int32Array(new SharedArrayBuffer(8))

const result = Atomics.waitAsync(ia, 0, 0)
if (result.async) {
  const promise: Promise<'ok' | 'timed-out'> = result.value
} else {
  const outcome: 'not-equal' | 'timed-out' = result.value
}
Atomics.waitAsync(ia, 0, 0, 10)
// @ts-expect-error an Int32Array or a BigInt64Array
Atomics.waitAsync(new Int8Array(2), 0, 0)
// @ts-expect-error the timeout is a number
Atomics.waitAsync(ia, 0, 0, '10')
const waited: 'ok' | 'not-equal' | 'timed-out' = Atomics.wait(ia, 0, 0, 0)
const woken: number = Atomics.notify(ia, 0, 1)

export {}
