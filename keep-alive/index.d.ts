/**
 * `atomics-waitasync/keep-alive`: on Node 16 and later, `Atomics.waitAsync` stays on the host's queue, but a pending
 * wait keeps the event loop alive; before 16, the same as `atomics-waitasync`.
 *
 * `./pure` describes the exports.
 */
export * from '../index'
