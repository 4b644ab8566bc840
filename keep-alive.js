'use strict'

/** Makes a pending `waitAsync` of the host's own queue keep the process alive. If the host has none, it installs ours, as the plain entry. */
const entry = require('./lib/entry.js')('keep-alive')

module.exports = entry

// Never run: Node finds the names for `import { … }` by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot // eslint-disable-line no-undef
})
