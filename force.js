'use strict'

/** Installs `Atomics.wait`, `notify` and `waitAsync` on the package's own queue, whatever the host has. */
const entry = require('./lib/entry.js')('force')

module.exports = entry

// Never run: Node finds the names for `import { … }` by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot // eslint-disable-line no-undef
})
