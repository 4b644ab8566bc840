'use strict'

/**
 * Locks and their family: what every entry point exports beside the functions of `Atomics`. Each of them is loaded at its first
 * use, since most programs use one or two.
 */

const { define, keys } = require('../util/intrinsics')

const load = {
  AsyncLock: () => require('./async-lock'),
  Barrier: () => require('./barrier'),
  Condition: () => require('./condition'),
  Latch: () => require('./latch'),
  Lock: () => require('./lock-manager').Lock,
  LockManager: () => require('./lock-manager').LockManager,
  RwLock: () => require('./rw-lock'),
  Semaphore: () => require('./semaphore'),
  UnlockToken: () => require('./internal/token').UnlockToken,
  locks: () => require('./lock-manager').locks,
  snapshot: () => require('./snapshot').snapshot
}

for (const name of keys(load)) {
  const become = (object, value) => define(object, name, value, true, true)
  Object.defineProperty(exports, name, {
    get () {
      const value = load[name]()
      become(this, value)
      return value
    },
    set (value) { become(this, value) },
    enumerable: true,
    configurable: true
  })
}
