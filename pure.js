'use strict'

/** Exports the functions on the package's own queue and touches no global. */
const entry = require('./lib/entry')('pure')

module.exports = entry

// Never run: the names that `import { … }` can have, for Node finds those by reading the source.
0 && (module.exports = { // eslint-disable-line no-unused-expressions
  wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount, // eslint-disable-line no-undef
  AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore, UnlockToken // eslint-disable-line no-undef
})
