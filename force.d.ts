/**
 * `atomics-waitasync/force`: loading this installs the package's `wait`, `notify` and `waitAsync` on every host.
 *
 * What it exports is described in `./pure`.
 */
export * from './index'
