'use strict'

/** Makes a pending `waitAsync` of the host's own queue keep the process alive. Where the host has none, as the plain entry. */
const entry = require('./lib/entry')('keep-alive')

module.exports = entry

// Never run: the names that `import { … }` can have, for Node finds those by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, UnlockToken // eslint-disable-line no-undef
})
