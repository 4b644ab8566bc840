/**
 * `atomics-waitasync`: where the host has no `Atomics.waitAsync`, loading this installs the package's own.
 *
 * What it exports is described in `./pure`.
 */

import { WaitAsyncResult } from './pure'

export * from './pure'

declare global {
  // Libraries before es2024 do not know it. Where one does, these are two more overloads of the same shape.
  interface Atomics {
    /**
     * Waits without blocking: the promise is fulfilled with `'ok'` after a notification, with `'timed-out'` after
     * `timeout` milliseconds.
     *
     * @param typedArray on a `SharedArrayBuffer`
     * @param index of the element to wait for
     * @param value waits only if the element holds this value
     * @param timeout in milliseconds, by default `Infinity`
     * @throws {TypeError} `typedArray` is no `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`
     * @throws {RangeError} `index` is not one of the array's
     * @see https://tc39.es/ecma262/#sec-atomics.waitasync
     */
    waitAsync(typedArray: Int32Array, index: number, value: number, timeout?: number): WaitAsyncResult
    waitAsync(
      typedArray: typeof globalThis extends { BigInt64Array: { prototype: infer T } } ? T : never,
      index: number,
      value: bigint,
      timeout?: number
    ): WaitAsyncResult
  }
}
