/**
 * `atomics-waitasync/web-locks`: loading it makes `navigator.locks`, `LockManager` and `Lock` those of the package, in
 * this thread and in the Workers that it starts from then on. It does not touch `Atomics`.
 *
 * `./pure` describes the exports, among them `locks`, which `navigator.locks` is now. The type of the global
 * `navigator.locks` stays that of the DOM's library or of Node's types, which know no `timeout`, `requestSync`, nor the
 * further members of a `Lock`.
 */
export * from '../pure'
