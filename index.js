'use strict'

/** Installs `Atomics.waitAsync`, with the `wait` and `notify` that belong to it, where the host has none. */
const entry = require('./lib/entry')('index')

module.exports = entry

// Never run: Node finds the names for `import { … }` by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot // eslint-disable-line no-undef
})
