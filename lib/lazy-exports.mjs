import createEntry from './entry-point.js'

// Their code is loaded at their first use, since an `import` of any name reads all.
export const {
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, Queue, RwLock, Semaphore, UnlockToken, locks, formatSnapshot,
  snapshot, isTimeoutError
} = createEntry.lazy
