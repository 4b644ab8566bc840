/**
 * `atomics-waitasync/keep-alive`: on Node 16 and later, `Atomics.waitAsync` stays on the host's queue, but a pending wait
 * keeps the event loop alive; below 16, as `atomics-waitasync`.
 *
 * What it exports is described in `./pure`.
 */
export * from './index'
