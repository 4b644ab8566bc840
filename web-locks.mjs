import entry from './es-modules.js'

const api = entry('web-locks')
export default api
export const { wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount } = api
// Their code is loaded at their first use.
export const {
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot
} = api[Symbol.for('atomics-waitasync.late')]
