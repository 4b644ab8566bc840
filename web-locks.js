'use strict'

/** Puts `navigator.locks`, `LockManager` and `Lock` in place: locks by name for all threads of the process. Does not touch Atomics. */
const entry = require('./lib/entry')('web-locks')

module.exports = entry

// Never run: Node finds the names for `import { … }` by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot // eslint-disable-line no-undef
})
