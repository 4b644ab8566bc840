/**
 * `atomics-waitasync/force`: loading it installs the package's `wait`, `notify` and `waitAsync` on every host.
 *
 * `./pure` describes the exports.
 */
export * from '../index'
