/**
 * `atomics-waitasync`: loading it installs the package's `Atomics.waitAsync` if the host has none.
 *
 * `./pure` describes the exports.
 */

import { WaitAsyncResult } from './pure'

export * from './pure'

declare global {
  // Libraries before es2024 do not declare it. In later ones these are two more overloads of the same shape.
  interface Atomics {
    /**
     * Waits without blocking: the promise is fulfilled with `'ok'` after a notification, with `'timed-out'` after
     * `timeout` milliseconds.
     *
     * @param typedArray an array on a `SharedArrayBuffer`
     * @param index the index of the element to wait for
     * @param value the value that the element must have, otherwise there is no wait
     * @param timeout in milliseconds, by default `Infinity`
     * @throws {TypeError} `typedArray` is not an `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`
     * @throws {RangeError} `index` is out of range
     * @see https://tc39.es/ecma262/#sec-atomics.waitasync
     *
     * @example
     * ```js
     * const { async, value } = Atomics.waitAsync(words, 0, 0, 1000)
     * const outcome = async ? await value : value // 'ok', 'not-equal' or 'timed-out'
     * ```
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
